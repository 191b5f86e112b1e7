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
	"maps"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/serve/internal/openai"
)

// source is kept with a run, to resume it.
type source struct {
	Published string      `json:"published"` // name of the pipeline
	Request   string      `json:"request"`   // digest of the api.Start
	Grant     []string    `json:"grant"`     // of the run; null for all
	Budget    *api.Budget `json:"budget,omitempty"`
	Person    bool        `json:"interactive,omitempty"` // waits for the run
	Batch     bool        `json:"batch,omitempty"`       // its models answer in batches
	Priority  int         `json:"priority,omitempty"`
	// Keep lets a protocol describe the run later.
	Keep    json.RawMessage `json:"keep,omitempty"`
	Chat    bool            `json:"chat,omitempty"`      // clients watch what it says
	Owner   string          `json:"owner,omitempty"`     // name of the caller that started it
	USDADay *float64        `json:"usd-a-day,omitempty"` // of the owner
}

func sourceOf(info journal.RunInfo) (src source, ok bool) {
	return src, json.Unmarshal(info.Source, &src) == nil && src.Published != ""
}

// tenantLabel is the label with the tenant of a run.
const tenantLabel = "tenant"

// keyOf returns the id in the journal of the run that a caller calls id. The ids of
// tenants are apart, so that no tenant can find out which ids another one uses.
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

// start starts the run with the id, or returns the one that the same request started.
func (s *Server) start(ctx context.Context, who Principal, id string, req api.Start) (info journal.RunInfo, created bool, err error) {
	p := s.pipelines[req.Pipeline]
	if p == nil {
		return info, false, s.noPipeline(req.Pipeline)
	}
	return s.startOf(ctx, who, p, id, req, protocol{})
}

// A protocol is the part of a run that only a protocol other than the API needs.
type protocol struct {
	keep  json.RawMessage // to describe the run later
	live  *openai.Live    // gets the text while a model writes it; may be nil
	chat  bool            // it is a turn of a conversation
	given openai.Given    // beside the input, which no client may give
}

// startOf starts a run of p.
func (s *Server) startOf(ctx context.Context, who Principal, p *Pipeline, id string, req api.Start, how protocol) (info journal.RunInfo, created bool, err error) {
	input, err := tree.ReadInput(ctx, p.Ashlar, req.Input)
	if err != nil {
		return info, false, invalid("%v", err)
	}
	if err := s.shows(p, input); err != nil {
		return info, false, err
	}
	if input, err = s.give(ctx, who, p, input, req.After, how.given); err != nil {
		return info, false, err
	}
	if err := possible(req.Budget); err != nil {
		return info, false, err
	}
	if err := bounds.CheckLabels(req.Labels); err != nil {
		return info, false, unreadable("%v", err)
	}
	if max(req.Priority, -req.Priority) > mostPriority {
		return info, false, unreadable("priority %d: want -%d to %[2]d", req.Priority, mostPriority)
	}
	if req.Grant != nil && !who.may(Grant) {
		return info, false, problem(api.Forbidden, http.StatusForbidden, "a grant needs the role %q, which the caller does not have", Grant)
	}
	src := source{
		Published: p.Name, Request: digestOf(req, how.given), Grant: grants.Narrow(grants.Narrow(p.Grant, who.Grant), req.Grant), Budget: least(p.Limits, who.Limits, req.Budget),
		Person: req.Interactive && who.Interactive, Priority: priorityOf(req, who), Batch: req.Batch, Owner: who.Name, USDADay: who.USDADay, Keep: how.keep, Chat: how.chat || turn.Listener(ctx) != nil,
	}
	cfg := stone.Config{RunID: keyOf(who, id), Input: input, Grant: src.Grant}
	if err := checked(p.Ashlar, cfg); err != nil {
		return info, false, err
	}
	labels := map[string]string{}
	maps.Copy(labels, req.Labels)
	if delete(labels, tenantLabel); who.Tenant != "" {
		labels[tenantLabel] = who.Tenant
	}
	if req.Batch {
		labels[batchLabel] = "true"
	}
	switch info, err := s.same(ctx, who, cfg.RunID, src); {
	case err == nil:
		return info, false, nil
	case !errors.Is(err, journal.ErrNoRun):
		return info, false, err
	}
	if err := s.asksFew(ctx, who.Tenant); err != nil {
		return info, false, err
	}
	if err := s.solvent(ctx, who.Name, who.USDADay); err != nil {
		return info, false, err
	}
	budgets, err := s.drawn(ctx, p.Name, labels, who.Name, who.USDADay)
	if err != nil {
		return info, false, err
	}
	run, fresh, err := s.launch(task{Pipeline: p, run: cfg, source: src, keep: journal.Options{Labels: labels, Notify: s.owed(p.Name, who), Budgets: budgets}, most: who.Runs, live: how.live})
	if err != nil {
		return info, false, err
	}
	select {
	case <-run.started:
	case <-ctx.Done():
		return info, false, context.Cause(ctx)
	}
	info, err = s.same(ctx, who, cfg.RunID, src)
	if errors.Is(err, journal.ErrNoRun) { // it has not started
		<-run.ended
		err = cmp.Or(run.err, err)
	}
	return info, fresh && !run.existed, err
}

// same returns the run with the id, if the same request has started it. The error is
// journal.ErrNoRun, or a conflict.
func (s *Server) same(ctx context.Context, who Principal, key string, src source) (journal.RunInfo, error) {
	info, err := s.exactly(ctx, key)
	if err != nil {
		return info, err
	}
	if was, ok := sourceOf(info); !ok || was.Request != src.Request || !who.sees(info) {
		return journal.RunInfo{}, conflict("the run exists and another request started it: choose another id")
	}
	return info, nil
}

// exactly returns the run with the id, which is not only the beginning of one.
func (s *Server) exactly(ctx context.Context, key string) (journal.RunInfo, error) {
	info, err := s.cfg.Journal.Find(ctx, key)
	if errors.As(err, new(*journal.AmbiguousError)) || err == nil && info.ID != key {
		return journal.RunInfo{}, journal.ErrNoRun
	}
	return info, err
}

// checked validates a pipeline for a run.
func checked(p stone.Ashlar, cfg stone.Config) error {
	given := cfg.Given()
	given.Unattended = false // its questions wait in the journal
	found := stone.Validate(p, given)
	if err := found.Err(); err != nil {
		e := invalid("%v", err)
		e.Findings = stone.Findings(found.Errors())
		return e
	}
	return nil
}

// digestOf returns the digest of a request with what its run is given. Equal requests have equal digests, however
// their JSON was written.
func digestOf(req api.Start, given openai.Given) string {
	text, err := json.Marshal(struct {
		api.Start
		Given openai.Given `json:"given,omitempty"`
	}{req, given})
	if err == nil {
		text, err = canon.AppendJSON(nil, text)
	}
	if err != nil { // it was read from JSON
		panic(fmt.Sprintf("the digest of a request: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// freshID is an id for a caller that chose none: 130 random bits.
func freshID() string { return strings.ToLower(rand.Text()) }

// least returns the strictest of several limits, nil for none.
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

// possible checks the budget of a request.
func possible(b *api.Budget) error {
	if b == nil {
		return nil
	}
	const most = 9_000_000_000 // seconds, which a time.Duration can hold
	switch usd, s := *cmp.Or(b.USD, new(0.0)), *cmp.Or(b.Seconds, new(0.0)); {
	case !(usd >= 0) || math.IsInf(usd, 1) || *cmp.Or(b.Tokens, new(0)) < 0 || *cmp.Or(b.Roundtrips, new(0)) < 0:
		return invalid("the budget: usd, tokens and roundtrips want 0 or more; without one there is no limit")
	case !(s >= 0 && s <= most):
		return invalid("the budget: seconds %v: want 0 to %d; without it there is no limit", s, int64(most))
	}
	return nil
}

// limitsOf returns the limits of a budget, which may be nil.
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

// result returns the result of a run that is done: the node that a step of it wrote, or nil if no step
// wrote one. What was given to the run is no result.
func (s *Server) result(ctx context.Context, info journal.RunInfo) (*api.Node, error) {
	want := info.Node
	if src, ok := sourceOf(info); ok && s.pipelines[src.Published] != nil && s.pipelines[src.Published].Result != "" {
		d, err := s.cfg.Journal.DAG(ctx, info.ID)
		if err != nil {
			return nil, err
		}
		n, err := d.Nearest(s.pipelines[src.Published].Result)
		switch {
		case errors.Is(err, dag.ErrMissing):
			return nil, nil
		case err != nil:
			return nil, err
		}
		want = n.ID()
	}
	if want == (dag.ID{}) {
		return nil, nil
	}
	input, err := journal.Input(ctx, s.cfg.Journal, info)
	if err != nil && !errors.Is(err, journal.ErrNoInput) {
		return nil, err
	}
	if input.Node(want) != nil {
		return nil, nil
	}
	n, err := s.cfg.Journal.Node(ctx, info.ID, want.String())
	if err != nil {
		return nil, err
	}
	node := api.Node(n)
	return &node, nil
}
