package llm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/transport"
)

// Spec contains the known facts about a model. A field that is zero is unknown.
type Spec struct {
	Price  *budget.Price
	Window int // maximum number of tokens of prompt and answer together
	Output int // maximum tokens per answer
	// Can lists the abilities of the model: "audio", "files", "images", "schema", "thinking", "tools" and "video". Nil means
	// unknown; an empty slice means none. For a model without "schema", the answer's schema is written into the prompt.
	Can []string
	// Limiter is the provider's limiter. It applies to models whose Config has no Limiter.
	Limiter *Limiter
}

// A Table returns the Spec of a model, given the Info with its name, provider and endpoint.
type Table func(Info) Spec

type tableKey struct{}

// WithTable returns a context in which models look up their Spec in t. A request that its model cannot answer according to t is not
// sent.
func WithTable(ctx context.Context, t Table) context.Context {
	return context.WithValue(ctx, tableKey{}, t)
}

// SpecOf returns the known facts about the model that req addresses. They come from the table in ctx, except that a price of m's
// own takes precedence unless req names a different model.
func SpecOf(ctx context.Context, m Model, req *Request) (s Spec) {
	info := InfoOf(m)
	own := info.Price
	if req.Model != "" && info.Model != "" && req.Model != info.Model {
		own = nil
	}
	info.Model = cmp.Or(req.Model, info.Model)
	if t, _ := ctx.Value(tableKey{}).(Table); t != nil {
		s = t(info)
	}
	if own != nil {
		s.Price = own
	}
	s.inBatch(ctx)
	return s
}

// inBatch halves the price if ctx sends requests in batches.
func (s *Spec) inBatch(ctx context.Context) {
	if s.Price == nil || !transport.Batched(ctx) {
		return
	}
	half := *s.Price
	for _, usd := range []*float64{&half.In, &half.Out, &half.CacheRead, &half.CacheWrite, &half.CacheHour} {
		*usd /= 2
	}
	s.Price = &half
}

// Fits returns an *UnfitError if, according to s, the model with the given name cannot answer the request, and otherwise nil.
func (s Spec) Fits(model string, req *Request) error {
	if in := req.inputTokens(); s.Window > 0 && in >= s.Window {
		return &UnfitError{model, fmt.Sprintf("the request has about %d tokens, more than the window of %d", in, s.Window)}
	}
	if s.Can == nil {
		return nil
	}
	for _, need := range req.needs() {
		if !slices.Contains(s.Can, need) {
			return &UnfitError{model, fmt.Sprintf("the request needs the ability %s, but the model has only %s", need, cmp.Or(strings.Join(s.Can, ", "), "none"))}
		}
	}
	return nil
}

// Enforces reports whether the provider can enforce the schema of an answer. It returns true if this is unknown.
func (s Spec) Enforces() bool { return s.Can == nil || slices.Contains(s.Can, "schema") }

// Within returns the request, or a copy with a smaller MaxTokens if the answer would not fit the rest of the window.
func (s Spec) Within(req *Request) *Request {
	room := s.Window - req.inputTokens()
	if s.Window == 0 || req.MaxTokens <= room {
		return req
	}
	bounded := *req
	bounded.MaxTokens = max(room, 1)
	return &bounded
}

// CheckFit returns an *UnfitError if, according to the table of ctx, the model cannot answer the request. A Fallback can answer
// it if one of its models can.
func CheckFit(ctx context.Context, m Model, req *Request) (err error) {
	f, several := m.(*fallback)
	if !several {
		return SpecOf(ctx, m, req).Fits(Name(m, req), req)
	}
	for i, m := range f.models {
		if err = CheckFit(ctx, m, f.request(i, req)); err == nil {
			return nil
		}
	}
	return err
}

// needs returns the abilities that a model needs to answer the request.
func (r *Request) needs() (needs []string) {
	add := func(need bool, name string) {
		if need && !slices.Contains(needs, name) {
			needs = append(needs, name)
		}
	}
	add(len(r.Tools) > 0, "tools")
	add(r.Params.Effort != "" && r.Params.Effort != "none", "thinking")
	for i := range r.Messages {
		for _, p := range r.Messages[i].Content {
			if p.Media != nil {
				add(true, ability(p.Media.Type))
			}
		}
	}
	return needs
}

// ability returns the name of the ability to read media of the given type.
func ability(mediaType string) string {
	switch kind, _, _ := strings.Cut(mediaType, "/"); kind {
	case "image":
		return "images"
	case "audio", "video":
		return kind
	}
	return "files"
}

// UnfitError reports a request that was not sent because the model cannot answer it.
type UnfitError struct {
	Model  string
	Reason string
}

// Error returns a message that names the model and the reason.
func (e *UnfitError) Error() string {
	return fmt.Sprintf("llm: %s cannot answer the request: %s", cmp.Or(e.Model, "the model"), e.Reason)
}

// Timeouts limits the phases of a request. Zero means the default, and a negative value means unlimited. A request that exceeds a
// limit fails with a *TimeoutError.
type Timeouts struct {
	Connect   time.Duration // time to connect to the server; default 10 s; ignored with a custom HTTP client
	FirstByte time.Duration // time from sending the request to the first byte of the answer; default 5 min
	// Silence is the longest pause between two bytes of the answer; default 2 min. If only keep-alives such as pings arrive, the
	// limit is five times as long.
	Silence time.Duration
	Total   time.Duration // time for the whole request, including retries but not waits for a Limiter; default 30 min
}

// WithDefaults returns t with each zero field replaced by its default, and each negative field replaced by zero.
func (t Timeouts) WithDefaults() Timeouts {
	t.Connect = defaultTo(t.Connect, 10*time.Second)
	t.FirstByte = defaultTo(t.FirstByte, 5*time.Minute)
	t.Silence = defaultTo(t.Silence, 2*time.Minute)
	t.Total = defaultTo(t.Total, 30*time.Minute)
	return t
}

// Retry limits the retries of a request. A request is retried if it failed with status 408, 409, 429 or 5xx, if the server could
// not be reached or was busy, or if the answer broke off. If deltas of the answer have been yielded, a Restart delta declares them
// void. The zero value means the defaults.
type Retry struct {
	Max     int           // number of retries; 0 means 3, and a negative value means none
	Wait    time.Duration // delay before the first retry, doubled for each further retry; default 500 ms
	MaxWait time.Duration // maximum delay; default 1 min; if the server requests a longer delay, the request fails
}

// WithDefaults returns r with each zero field replaced by its default, and each negative field replaced by zero.
func (r Retry) WithDefaults() Retry {
	r.Max = defaultTo(r.Max, 3)
	r.Wait = defaultTo(r.Wait, 500*time.Millisecond)
	r.MaxWait = defaultTo(r.MaxWait, time.Minute)
	return r
}

func defaultTo[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return max(v, 0)
}
