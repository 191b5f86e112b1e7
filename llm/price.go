package llm

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/stonelayer/stone/budget"
)

// Priced returns a Model that is m with the price p. Budgets in USD require a price. The zero Price means that the model costs
// nothing. If m is a [Fallback], the price applies to each of its models.
func Priced(m Model, p budget.Price) Model {
	f, several := m.(*fallback)
	if !several {
		return &priced{m, p}
	}
	models := make([]Model, len(f.models))
	for i, m := range f.models {
		models[i] = Priced(m, p)
	}
	return Fallback(models...)
}

type priced struct {
	model Model
	price budget.Price
}

// Stream implements Model.
func (p *priced) Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return p.model.Stream(ctx, req)
}

// Check implements Checker.
func (p *priced) Check() error {
	if c, ok := p.model.(Checker); ok {
		return c.Check()
	}
	return nil
}

// CheckParams returns the model's error for the settings, if any.
func (p *priced) CheckParams(params Params) error { return CheckParams(p.model, params) }

// CheckMedia returns the model's error for the media, if any.
func (p *priced) CheckMedia(role Role, m *Media) error { return CheckMedia(p.model, role, m) }

// Info implements Informer.
func (p *priced) Info() Info {
	info := InfoOf(p.model)
	info.Price = &p.price
	return info
}

// InfoOf returns the Info of m, or the zero Info if m is not an Informer.
func InfoOf(m Model) (info Info) {
	if i, ok := m.(Informer); ok {
		info = i.Info()
	}
	return info
}

func deref(p *budget.Price) budget.Price { return *cmp.Or(p, &budget.Price{}) }

const (
	bytesPerToken = 4
	// answerTokens is the assumed maximum number of tokens in an answer without a limit, and mediaTokens the assumed maximum for a
	// picture.
	answerTokens = 4096
	mediaTokens  = 4096
)

// Tokens estimates the number of tokens in the request's input and in its longest answer. The input estimate is the Prefix's
// number of tokens, plus one token for every four bytes that follow it.
func (r *Request) Tokens() (in, out int) { return r.inputTokens(), cmp.Or(r.MaxTokens, answerTokens) }

func (r *Request) inputTokens() int {
	n, known, first := 0, 0, 0
	if p := r.Prefix; p != nil && p.Messages <= len(r.Messages) {
		known, first = p.Tokens, p.Messages
	} else {
		n = len(r.System)
		for i := range r.Tools {
			n += len(r.Tools[i].Name) + len(r.Tools[i].Description) + len(r.Tools[i].Schema)
		}
		if r.ResponseFormat != nil {
			n += len(r.ResponseFormat.Schema)
		}
	}
	for i := range r.Messages[first:] {
		text, media := r.Messages[first+i].size()
		n, known = n+text, known+media
	}
	return n/bytesPerToken + 1 + known
}

// Tokens estimates how many input tokens the message takes.
func (m *Message) Tokens() int {
	text, media := m.size()
	return (text+bytesPerToken-1)/bytesPerToken + media
}

// size returns the message's number of text bytes, and how many tokens its media are estimated to take.
func (m *Message) size() (text, media int) {
	for i := range m.Content {
		p := &m.Content[i]
		text += len(p.Text) + len(p.Value)
		if p.Media != nil {
			media += p.Media.tokens()
		}
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		text += len(c.Name) + len(c.Input) + len(c.InputText)
	}
	if len(m.Metadata) == 0 { // ranging over an empty map would take longer than everything else here
		return text, media
	}
	for key, value := range m.Metadata {
		if !strings.HasPrefix(key, "stone/") { // such metadata is not sent to any provider
			text += len(value)
		}
	}
	return text, media
}

// outputTokens estimates how many tokens of the answer have been received so far.
func (r *Reply) outputTokens() int {
	n := len(r.Text) + len(r.Reasoning) + len(r.Refusal)
	for _, c := range r.ToolCalls {
		n += len(c.Name) + len(c.Input) + len(c.InputText)
	}
	return (n + bytesPerToken - 1) / bytesPerToken
}

// Quote estimates the cost of a request. The least cost is the cost of the input, and the most adds the longest answer. The request
// counts as one round trip. For a model that pays for its answers itself, Quote returns the zero Quote.
func Quote(ctx context.Context, m Model, req *Request) budget.Quote {
	if f, several := m.(*fallback); several {
		return f.quote(ctx, req)
	}
	if InfoOf(m).Pays {
		return budget.Quote{}
	}
	spec := SpecOf(ctx, m, req)
	price, ok := deref(spec.Price), spec.Price != nil
	if req.Params.CacheTTL != "" {
		price = price.Hour()
	}
	in, out := req.Tokens()
	if longest := spec.Output; longest > 0 && (req.MaxTokens == 0 || longest < out) {
		out = longest
	}
	least, most := budget.Usage{InputTokens: in}, budget.Usage{InputTokens: in, OutputTokens: out}
	if req.Cache { // the whole prompt may be read from the cache or written to it
		least.CacheReadTokens, most.CacheWriteTokens = in, in
	}
	q := budget.Quote{
		Least:  budget.Amount{Roundtrips: 1, USD: price.Of(least)},
		Most:   budget.Amount{Roundtrips: 1, Tokens: in + out, USD: price.Of(most)},
		Output: out, USDPerOutput: price.Out / 1e6,
	}
	if !ok {
		q.Unpriced = cmp.Or(req.Model, InfoOf(m).Model, "unnamed")
	}
	return q
}

// longAnswer is a number of tokens that exceeds the longest answers of almost all models. Bound does not use larger limits, because
// providers reject a limit above the model's maximum.
const longAnswer = 128 << 10

// Bound returns the limit for an answer that must fit what is left of an account: the smaller of maxTokens and left.Tokens, but at
// least 1. A maxTokens of 0 means no limit. Bound returns maxTokens unchanged if left.Tokens is nil or, for 0, exceeds all answers.
func Bound(maxTokens int, left budget.Limits) int {
	if left.Tokens == nil || maxTokens == 0 && *left.Tokens >= longAnswer {
		return maxTokens
	}
	tokens := max(*left.Tokens, 1)
	if maxTokens == 0 {
		return tokens
	}
	return min(maxTokens, tokens)
}

// A Meter measures the usage of one request from its stream, even if the stream breaks off or the request is retried. If the
// request has an account or a price, the Meter estimates usage that the server has not reported.
type Meter struct {
	ctx     context.Context // context of the request
	price   budget.Price
	spec    Spec
	counts  bool // there is an account or a price
	req     *Request
	started bool         // the server has started to answer
	said    int          // the answer's bytes so far
	void    budget.Usage // usage of earlier attempts
}

// NewMeter returns a Meter for the request req to m.
func NewMeter(ctx context.Context, m Model, req *Request) *Meter {
	spec := SpecOf(ctx, m, req)
	return &Meter{ctx: ctx, price: deref(spec.Price), spec: spec, counts: spec.Price != nil || budget.From(ctx) != nil, req: req}
}

// Hear processes the next delta of the stream.
func (m *Meter) Hear(d *Delta) {
	switch d.Kind {
	case Start:
		m.started = true
	case Text, Reasoning, Refusal, ToolInput:
		m.started = true
		m.said += len(d.Text)
	case ToolCallStart:
		m.started = true
	case Restart:
		m.void = m.void.Add(m.attempt(d.Reply, d.Err))
		m.started, m.said = false, 0
	}
}

// Spent returns the usage of the request, including failed attempts. Call it after the stream has ended, with the reply or, after
// an error, with the partial reply (which may be nil) and the error.
func (m *Meter) Spent(reply *Reply, err error) budget.Usage {
	return m.void.Add(m.attempt(reply, err))
}

// attempt returns the usage of the attempt that ended with reply and err.
func (m *Meter) attempt(reply *Reply, err error) budget.Usage {
	if reply == nil {
		reply = &Reply{}
	}
	if reply.Spent != nil {
		return *reply.Spent
	}
	u := reply.Usage.Counted()
	if in, out := reply.Usage.InputTokens == nil, reply.Usage.OutputTokens == nil; m.counts && (err != nil && (in || out) || in && out) {
		if tokens := m.req.inputTokens(); in && m.billed(reply, err) {
			u.InputTokens, u.Estimated = atMost(tokens, m.spec.Window), true
		}
		if tokens := max(reply.outputTokens(), (m.said+bytesPerToken-1)/bytesPerToken); out && tokens > 0 {
			u.OutputTokens, u.Estimated = atMost(tokens, m.spec.limit(m.req.MaxTokens)), true
		}
	}
	u.USD = m.price.Of(u) + m.extra(&reply.Usage)
	return u.Sane()
}

// atMost returns tokens, but at most limit. A limit of 0 means no limit.
func atMost(tokens, limit int) int {
	if limit > 0 {
		return min(tokens, limit)
	}
	return tokens
}

// extra returns the costs in USD that are not part of the plain token prices: searches, and the surcharge for the one-hour cache.
func (m *Meter) extra(u *Usage) float64 {
	usd := float64(max(u.Searches, 0)) * m.price.Search / 1000
	if hour := min(u.CacheHourTokens, u.CacheWriteTokens); hour > 0 {
		usd += float64(hour) * (m.price.Hour().CacheWrite - cmp.Or(m.price.CacheWrite, m.price.In)) / 1e6
	}
	return usd
}

// billed reports whether the input of a request counts as billed if its usage was not reported. It returns false if the server
// rejected the request or could not be reached. It returns true for a canceled request, because the server may have started to work
// on it.
func (m *Meter) billed(reply *Reply, err error) bool {
	if err == nil || m.said > 0 || reply.outputTokens() > 0 || m.ctx.Err() != nil {
		return true
	}
	if timeout, ok := errors.AsType[*TimeoutError](err); ok {
		return timeout.Phase != "connect"
	}
	_, refused := errors.AsType[*ProviderError](err)
	return m.started && !refused
}

// Counted returns the usage as a budget.Usage, without costs in USD.
func (u Usage) Counted() budget.Usage {
	c := budget.Usage{CacheReadTokens: u.CachedInputTokens, CacheWriteTokens: u.CacheWriteTokens}
	if u.InputTokens != nil {
		c.InputTokens = *u.InputTokens
	}
	if u.OutputTokens != nil {
		c.OutputTokens = *u.OutputTokens
	}
	if u.ReasoningApart {
		c.OutputTokens += u.ReasoningTokens
	}
	return c.Sane()
}
