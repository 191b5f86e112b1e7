// Package kpi provides the command kpi, which counts the calls in recorded runs:
//
//	func main() { cli.Main(Pipeline, kpi.Part) }
package kpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/command"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// Part provides the command.
var Part = command.Commands{"kpi": func() command.Command {
	return command.Command{Runs: "count", JSON: "the counters and rates as a JSON object", Run: run}
}}

func run(ctx context.Context, h *command.Host) error {
	all := newScore()
	intents := map[string]*score{}
	runs, more, err := h.Chosen(ctx, func(j journal.Journal, run journal.RunInfo) error {
		for r, err := range calls(ctx, j, run.ID) {
			if errors.As(err, new(*journal.DamageError)) || errors.Is(err, journal.ErrNoRun) { // damaged or removed meanwhile: the other runs still count
				h.Complain("%v", err)
				break
			}
			if err != nil {
				return &command.Exit{Code: 1, Err: err} // no wrong usage
			}
			all.count(r)
			if intents[r.Intent] == nil {
				intents[r.Intent] = newScore()
			}
			intents[r.Intent].count(r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if more {
		h.Complain("only the newest %d runs are counted: --all counts all", runs)
	}
	if all.Tally().Calls == 0 && !h.JSON {
		h.Complain("no calls in %s in %s", text.Plural(runs, "run"), h.Database)
		return nil
	}
	byIntent := map[string]scoreJSON{}
	for intent, s := range intents {
		byIntent[intent] = s.json()
	}
	return h.Print(struct {
		Runs    int                  `json:"runs"`
		All     scoreJSON            `json:"all"`
		Intents map[string]scoreJSON `json:"intents"`
	}{runs, all.json(), byIntent}, h.Table(table(all, intents))+"\n"+ratesOf(all.Tally().KPIs())+"\n")
}

// calls yields the records of a run's finished calls. After an error, the iteration ends.
func calls(ctx context.Context, j journal.Journal, run string) func(yield func(*call.Record, error) bool) {
	return func(yield func(*call.Record, error) bool) {
		for st, err := range j.EachStep(ctx, run) {
			if err != nil {
				yield(nil, err)
				return
			}
			// A reused result is counted only in the run that produced it.
			if st.Kind != "leaf" || !st.Recorded || st.From != "" {
				continue
			}
			if r := call.RecordIn(st.Meta); r != nil && r.Intent != "" && !yield(r, nil) { // tools have no intent
				return
			}
		}
	}
}

// A score holds the counters of some calls.
type score struct {
	call.Counters
	fallbacks int // for a capability: number of calls that tried another capability first
	usage     budget.Usage
	latency   time.Duration // total latency of all attempts
	caps      map[string]*score
}

func newScore() *score { return &score{caps: map[string]*score{}} }

// count counts a call for the totals and for each capability that the call has tried.
func (s *score) count(r *call.Record) {
	s.Count(r)
	parts := map[string]*call.Record{}
	for _, t := range r.Tried {
		p := parts[t.Cap]
		if p == nil {
			p = &call.Record{Cap: t.Cap}
			parts[t.Cap] = p
		}
		p.Tried = append(p.Tried, t)
		s.add(t)
	}
	for id, p := range parts {
		c := s.caps[id]
		if c == nil {
			c = newScore()
			s.caps[id] = c
		}
		if !slices.ContainsFunc(p.Tried, func(t call.Attempt) bool { return t.Failure == "" }) {
			p.Failure = p.Tried[len(p.Tried)-1].Failure
		}
		c.Count(p)
		if id != r.Tried[0].Cap && !p.Tried[0].Repair {
			c.fallbacks++
		}
		for _, t := range p.Tried {
			c.add(t)
		}
	}
}

func (s *score) add(t call.Attempt) {
	s.usage = s.usage.Add(t.Usage.Usage)
	s.latency += time.Duration(t.Usage.LatencyMS) * time.Millisecond
}

// tally returns the counters as a call.Tally. For a capability, they include the fallbacks.
func (s *score) tally() call.Tally {
	t := s.Tally()
	t.FallbackHops += s.fallbacks
	return t
}

func table(all *score, intents map[string]*score) [][]string {
	rows := [][]string{{"INTENT", "CAPABILITY", ">CALLS", ">PASSED", ">ATTEMPTS", ">RETRIES", ">FALLBACKS", ">MUST-FAILED", ">JUDGED", ">LATENCY", ">TOKENS", ">COST"}}
	row := func(intent, id string, s *score) {
		t, latency := s.tally(), ""
		if t.Attempts > 0 {
			latency = progress.Duration(s.latency / time.Duration(t.Attempts))
		}
		rows = append(rows, []string{text.Line(intent), text.Line(id), strconv.Itoa(t.Calls), strconv.Itoa(t.Succeeded), strconv.Itoa(t.Attempts), text.Amount(t.Retries),
			text.Amount(t.FallbackHops), text.Amount(t.MustFailed), text.Amount(t.JudgeUsed), latency, text.Amount(s.usage.Tokens()), money.USD(s.usage.USD, s.usage.Estimated)})
	}
	for _, intent := range slices.Sorted(maps.Keys(intents)) {
		s := intents[intent]
		row(intent, "", s)
		for _, id := range slices.Sorted(maps.Keys(s.caps)) {
			row("", id, s.caps[id])
		}
	}
	row("all", "", all)
	return rows
}

// ratesOf returns a line with the rates and, if there were failures, a second line with the failures.
func ratesOf(k call.KPIs) string {
	var rates []string
	for _, r := range []struct {
		name string
		rate *float64
	}{
		{"parse rate", k.ParseRate}, {"retries per call", k.RetryRate}, {"fallbacks per call", k.FallbackRate},
		{"must-failed per attempt", k.MustFailedRate}, {"judge passes", k.JudgePassRate},
	} {
		if r.rate != nil {
			rates = append(rates, fmt.Sprintf("%s %.0f%%", r.name, 100**r.rate))
		}
	}
	line := strings.Join(rates, ", ")
	var failures []string
	for _, kind := range slices.SortedFunc(maps.Keys(k.ByType), func(a, b string) int {
		return cmp.Or(cmp.Compare(k.ByType[b], k.ByType[a]), cmp.Compare(a, b))
	}) {
		failures = append(failures, fmt.Sprintf("%s %d", text.Line(kind), k.ByType[kind]))
	}
	if len(failures) > 0 {
		line += "\nfailed: " + strings.Join(failures, ", ")
	}
	return line
}

// scoreJSON is the JSON form of a score.
type scoreJSON struct {
	call.Tally
	budget.Usage
	LatencyMS int64                `json:"latency-ms,omitempty"` // total latency of all attempts
	KPI       call.KPIs            `json:"kpi"`
	Caps      map[string]scoreJSON `json:"capabilities,omitempty"`
}

func (s *score) json() scoreJSON {
	t := s.tally()
	out := scoreJSON{Tally: t, Usage: s.usage, LatencyMS: s.latency.Milliseconds(), KPI: t.KPIs(), Caps: map[string]scoreJSON{}}
	for id, c := range s.caps {
		out.Caps[id] = c.json()
	}
	return out
}
