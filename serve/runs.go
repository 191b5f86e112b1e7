package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/talk"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// source is stored with a run, so that the run can be resumed.
type source struct {
	Published string      `json:"published"` // name of the pipeline
	Request   string      `json:"request"`   // digest of the api.Start
	Grant     []string    `json:"grant"`     // effects that the run may have; null means all
	Budget    *api.Budget `json:"budget,omitempty"`
	Person    bool        `json:"interactive,omitempty"` // a person is waiting for the run
	Batch     bool        `json:"batch,omitempty"`       // the models of the run answer in batches
	Priority  int         `json:"priority,omitempty"`
	// Keep holds data from which a protocol describes the run later.
	Keep    json.RawMessage `json:"keep,omitempty"`
	Chat    bool            `json:"chat,omitempty"`      // clients are watching the answers of the run
	Owner   string          `json:"owner,omitempty"`     // name of the caller that started the run
	USDADay *float64        `json:"usd-a-day,omitempty"` // daily limit of the owner
}

func sourceOf(info journal.RunInfo) (src source, ok bool) {
	return src, json.Unmarshal(info.Source, &src) == nil && src.Published != ""
}

// tenantLabel is the label that contains a run's tenant.
const tenantLabel = "tenant"

// keyOf returns the journal's ID for a run that the caller knows under id. Each tenant has its own IDs, so no tenant can find out
// the IDs of another.
func keyOf(who Principal, id string) string {
	if who.Tenant == "" {
		return id
	}
	return who.Tenant + "." + id
}

// nameOf is the inverse of keyOf.
func nameOf(who Principal, key string) string {
	if who.Tenant == "" {
		return key
	}
	return strings.TrimPrefix(key, who.Tenant+".")
}

// start starts a run with the id, or returns the run if an identical request has already started it.
func (s *Server) start(ctx context.Context, who Principal, id string, req api.Start) (info journal.RunInfo, created bool, err error) {
	p := s.pipelines[req.Pipeline]
	if p == nil {
		return info, false, s.noPipeline(req.Pipeline)
	}
	return s.startOf(ctx, who, p, id, protocol.Run{Start: req})
}

// startOf starts a run of p for a request and returns the run. It reads the request, calls the Before functions of the extras and
// checks the owner's limit of runs. If an identical request has already started the run, it returns that run.
func (s *Server) startOf(ctx context.Context, who Principal, p *Pipeline, id string, req protocol.Run) (info journal.RunInfo, created bool, err error) {
	t := task{Pipeline: p, who: who, start: req, most: who.Runs}
	t.run.RunID = keyOf(who, id)
	t.source = source{Published: p.Name, Request: digestOf(req.Start, req.Given), Person: req.Interactive && who.Interactive, Owner: who.Name, Keep: req.Keep}
	if t.run.Input, err = tree.ReadInput(ctx, p.Ashlar, req.Input); err != nil {
		return info, false, invalid("%v", err)
	}
	return s.begin(ctx, t)
}

// begin starts a task's run, or returns the run if an identical request has already started it.
func (s *Server) begin(ctx context.Context, t task) (info journal.RunInfo, created bool, err error) {
	who := t.who
	if info, err = s.same(ctx, who, t.run.RunID, t.source); !errors.Is(err, journal.ErrNoRun) {
		return info, false, err
	}
	if err := s.before(ctx, &t); err != nil {
		return info, false, err
	}
	run, fresh, err := s.launch(t)
	if err != nil {
		return info, false, err
	}
	select {
	case <-run.started:
	case <-ctx.Done():
		return info, false, context.Cause(ctx)
	}
	info, created, known := run.noted.is(s.runs(t.run.RunID))
	if created = created && fresh; created && known {
		return info, true, nil
	}
	info, err = s.same(ctx, who, t.run.RunID, t.source)
	if errors.Is(err, journal.ErrNoRun) { // the run has not started
		<-run.ended
		err = cmp.Or(run.err, err)
		if rejected, ok := errors.AsType[*stone.Invalid](err); ok {
			e := invalid("%v", rejected)
			e.Findings = stone.Findings(rejected.Findings.Errors())
			err = e
		}
	}
	return info, created, err
}

// same returns the run with the id if an identical request has started it. If there is no such run, the error is
// journal.ErrNoRun; if a different request has started it, the error is a conflict.
func (s *Server) same(ctx context.Context, who Principal, key string, src source) (journal.RunInfo, error) {
	info, err := s.exactly(ctx, key)
	if err != nil {
		return info, err
	}
	if was, ok := sourceOf(info); !ok || was.Request != src.Request || !who.sees(info) {
		return journal.RunInfo{}, conflict("the run already exists and was started by another request: choose another id")
	}
	return info, nil
}

// exactly returns the run with this ID. Unlike Journal.Run, it does not accept a prefix.
func (s *Server) exactly(ctx context.Context, key string) (journal.RunInfo, error) {
	info, err := s.cfg.Journal.Find(ctx, key)
	if errors.As(err, new(*journal.AmbiguousError)) || err == nil && info.ID != key {
		return journal.RunInfo{}, journal.ErrNoRun
	}
	return info, err
}

// digestOf returns a digest of a request and its run's inputs. Equal requests have equal digests, however their JSON is
// formatted.
func digestOf(req api.Start, given talk.Given) string {
	text, err := json.Marshal(struct {
		api.Start
		Given talk.Given `json:"given,omitempty"`
	}{req, given})
	if err == nil {
		text, err = canon.AppendJSON(nil, text)
	}
	if err != nil { // cannot happen: the value was decoded from JSON
		panic(fmt.Sprintf("the digest of a request: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// freshID returns a random id of 130 bits, for callers that have not chosen one.
func freshID() string { return strings.ToLower(rand.Text()) }

// least returns the strictest of several limits, or nil if there are none.
func least(a, b budget.Limits, c *api.Budget) *api.Budget {
	l := a
	for _, o := range []budget.Limits{b, limitsOf(c)} {
		l.USD, l.Tokens = bounds.Least(l.USD, o.USD), bounds.Least(l.Tokens, o.Tokens)
		l.Roundtrips, l.Latency = bounds.Least(l.Roundtrips, o.Roundtrips), bounds.Least(l.Latency, o.Latency)
	}
	if l == (budget.Limits{}) {
		return nil
	}
	least := &api.Budget{USD: l.USD, Tokens: l.Tokens, Roundtrips: l.Roundtrips}
	if l.Latency != nil {
		least.Seconds = new(l.Latency.Seconds())
	}
	return least
}

// limited sets a run's budget to the strictest limit from its pipeline, its caller and its request.
func limited(_ context.Context, t *task) error {
	b := t.start.Budget
	if b == nil {
		b = &api.Budget{}
	}
	const most = 9_000_000_000 // seconds; more would not fit in a time.Duration
	switch usd, s := *cmp.Or(b.USD, new(0.0)), *cmp.Or(b.Seconds, new(0.0)); {
	case !(usd >= 0) || math.IsInf(usd, 1) || *cmp.Or(b.Tokens, new(0)) < 0 || *cmp.Or(b.Roundtrips, new(0)) < 0:
		return invalid("the budget: usd, tokens and roundtrips want 0 or more; without one there is no limit")
	case !(s >= 0 && s <= most):
		return invalid("the budget: seconds %v: want 0 to %d; without it there is no limit", s, int64(most))
	}
	t.source.Budget = least(t.Limits, t.who.Limits, b)
	return nil
}

// limitsOf returns the limits in b, or no limits if b is nil.
func limitsOf(b *api.Budget) budget.Limits {
	if b == nil {
		return budget.Limits{}
	}
	l := budget.Limits{USD: b.USD, Tokens: b.Tokens, Roundtrips: b.Roundtrips}
	if b.Seconds != nil {
		l.Latency = new(time.Duration(*b.Seconds * float64(time.Second)))
	}
	return l
}

// result returns the result of a completed run: the nearest node of the pipeline's Result type or, if the pipeline declares none,
// the run's last node. It returns nil if the run has no such node; the run's input is never its result.
func (s *Server) result(ctx context.Context, who Principal, info journal.RunInfo) (*api.Node, error) {
	var n journal.NodeInfo
	var err error
	if info.Node != (dag.ID{}) {
		if n, err = s.cfg.Journal.Node(ctx, info.ID, info.Node.String()); err != nil {
			return nil, err
		}
	}
	if src, ok := sourceOf(info); ok && s.pipelines[src.Published] != nil && s.pipelines[src.Published].Result != "" && s.pipelines[src.Published].Result != n.Type {
		d, err := s.cfg.Journal.DAG(ctx, info.ID) // this reads the whole run, so it comes last
		if err != nil {
			return nil, err
		}
		nearest, err := d.Nearest(s.pipelines[src.Published].Result)
		switch {
		case errors.Is(err, dag.ErrMissing):
			return nil, nil
		case err != nil:
			return nil, err
		}
		if n, err = s.cfg.Journal.Node(ctx, info.ID, nearest.ID().String()); err != nil {
			return nil, err
		}
	}
	if n.ID == (dag.ID{}) {
		return nil, nil
	}
	input, err := journal.Input(ctx, s.cfg.Journal, info)
	if err != nil && !errors.Is(err, journal.ErrNoInput) {
		return nil, err
	}
	if input.Node(n.ID) != nil {
		return nil, nil
	}
	n.Meta = originIn(who, n.Meta)
	node := api.Node(n)
	return &node, nil
}
