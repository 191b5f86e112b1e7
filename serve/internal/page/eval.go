package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// evaluated is the report of an evaluation, with data that only the page needs.
type evaluated struct {
	Report
	Run     string // "" in a file, which has no links to other pages
	Base    string // run of the baseline; "" if it is not in the journal
	Plot    *plot
	turned  map[[2]string]turnedCase // by score name and case path
	missed  map[[2]string]turnedCase
	means   scale
	changes scale
}

// A turnedCase holds a case's answers in the baseline and in this evaluation. An answer is empty if the journal does not have it.
type turnedCase struct {
	Before, Now reply
	Fields      []field // fields that differ
	Equal       int     // number of fields that are equal
	want        leaves
}

// Want returns the expected value of a field, or "".
func (c turnedCase) Want(f field) string { return c.want.values[f.Name] }

// Shown returns the fields, or a single empty field if there are none, so that the case has a row.
func (c turnedCase) Shown() []field {
	if len(c.Fields) == 0 {
		return []field{{}}
	}
	return c.Fields
}

// A reply is the answer to a case with the scorer's reason.
type reply struct {
	Why    string
	output json.RawMessage
}

// Case returns both answers to a case whose score changed between right and wrong.
func (e *evaluated) Case(score string, t judged) turnedCase {
	return e.turned[[2]string{score, t.Path}]
}

// readTurned reads the answers to cases that turned. A report lists at most 50 of these per score.
func (e *evaluated) readTurned(ctx context.Context, v View, run string) error {
	e.turned = map[[2]string]turnedCase{}
	for _, s := range e.Against.Scores {
		for _, t := range s.Turned {
			if t.Path == "" {
				continue
			}
			c := turnedCase{want: leavesOf(t.Expected)}
			var err error
			if c.Now, err = replyTo(ctx, v, run, t.Path, s.Name); err == nil && e.Base != "" {
				c.Before, err = replyTo(ctx, v, e.Base, t.Path, s.Name)
			}
			if err != nil {
				return err
			}
			c.Fields, c.Equal = fieldsOf(c.Before.output, c.Now.output)
			e.turned[[2]string{s.Name, t.Path}] = c
		}
	}
	return nil
}

// readMissed reads the answers to wrong cases, each with the expected answer.
func (e *evaluated) readMissed(ctx context.Context, v View, run string) error {
	e.missed = map[[2]string]turnedCase{}
	for _, s := range e.Scores {
		for _, t := range s.Missed {
			now, err := replyTo(ctx, v, run, t.Path, s.Name)
			if err != nil {
				return err
			}
			c := turnedCase{Now: now}
			c.Fields, c.Equal = expectedOf(t.Expected, now.output)
			e.missed[[2]string{s.Name, t.Path}] = c
		}
	}
	return nil
}

// Missed returns the answer to a case that is wrong according to a score.
func (e *evaluated) Missed(score string, t judged) turnedCase {
	return e.missed[[2]string{score, t.Path}]
}

// Expects reports whether any of the cases has an expected answer.
func (*evaluated) Expects(all []judged) bool {
	return slices.ContainsFunc(all, func(t judged) bool { return len(t.Expected) > 0 })
}

// replyTo reads the answer to the case at a path, and the reason for its score.
func replyTo(ctx context.Context, v View, run, path, score string) (out reply, err error) {
	answer, err := view.Record(ctx, v.Journal, run, path+"/case/answer", "leaf")
	if answer == nil {
		return out, err
	}
	var said struct {
		Output json.RawMessage `json:"output"`
	}
	if json.Unmarshal(answer.Content, &said) == nil {
		out.output = said.Output
	}
	scored, err := view.Record(ctx, v.Journal, run, address.Child(path+"/case", score, 1), "leaf")
	var s struct{ Reason string }
	if scored != nil && json.Unmarshal(scored.Content, &s) == nil {
		out.Why = text.Cut(s.Reason, columnsOfCase)
	}
	return out, err
}

// columnsOfCase is the maximum width of a case's texts, in characters.
const columnsOfCase = 160

// A scale is the range of values covered by a column's intervals.
type scale struct{ low, high float64 }

func (s *scale) add(e Estimate) {
	s.low, s.high = min(s.low, e.Low, e.Mean), max(s.high, e.High, e.Mean)
}

// onto returns a function that maps a value of the scale to a position between low and high in a drawing.
func (s scale) onto(low, high float64) func(float64) float64 {
	return func(v float64) float64 { return low + (v-s.low)/max(s.high-s.low, 1e-12)*(high-low) }
}

// ticks returns five tick marks of the scale.
func (s scale) ticks(at func(float64) float64) (out []tick) {
	for i := range 5 {
		v := s.low + float64(i)/4*(s.high-s.low)
		out = append(out, tick{at(v), fmt.Sprintf("%.2f", v)})
	}
	return out
}

// An interval is an estimate as drawn, in the units of a bar.
type interval struct{ From, Width, Mean, Zero float64 }

func (s scale) draw(e Estimate) interval {
	at := func(x float64) float64 {
		if s.high <= s.low || math.IsNaN(x) {
			return 0
		}
		return min(max((x-s.low)/(s.high-s.low), 0), 1) * barWidth
	}
	return interval{From: at(e.Low), Width: max(at(e.High)-at(e.Low), 1), Mean: min(at(e.Mean), barWidth-1.5), Zero: at(0)}
}

// Mean draws an interval of the report; Change draws one of the comparison with the baseline.
func (e *evaluated) Mean(m Estimate) interval   { return e.means.draw(m) }
func (e *evaluated) Change(m Estimate) interval { return e.changes.draw(m) }

// TurnedURL returns the address of a case, or of its comparison if the case turned.
func (e *evaluated) TurnedURL(t judged) string {
	switch {
	case e.Run == "" || t.Path == "":
		return ""
	case e.Base == "" || t.Before == t.Now: // a wrong case that did not turn
		return runURL(e.Run, "at", t.Path)
	}
	return comparison{A: rowOf(journal.RunInfo{ID: e.Base}), B: rowOf(journal.RunInfo{ID: e.Run})}.URL("under", t.Path)
}

// Sentence describes the result of the evaluation for the first score, and the rule that decided it.
func (e *evaluated) Sentence() string {
	if len(e.Scores) == 0 {
		return ""
	}
	s := e.Scores[0]
	if e.Against == nil || len(e.Against.Scores) == 0 {
		return fmt.Sprintf("%s is %.3f (95 %% %.3f to %.3f): %d right, %d wrong, %d without an answer.", s.Name, s.Mean, s.Low, s.High, s.Right, s.Wrong, s.NoAnswer)
	}
	a := e.Against.Scores[0]
	than := "as good as"
	switch {
	case a.Low > 0:
		than = "better than"
	case a.High < 0:
		than = "worse than"
	case a.Mean != 0:
		than = "perhaps " + map[bool]string{true: "better", false: "worse"}[a.Mean > 0] + " than"
	}
	out := fmt.Sprintf("%s is %s before: %s (95 %% %s to %s), %s gained and %d lost.", a.Name, than, signed(a.Mean), signed(a.Low), signed(a.High), plural(a.Gained, "case"), a.Lost)
	if e.Gate != nil {
		for _, r := range e.Gate.Rules {
			if r.Verdict != "passed" {
				out += fmt.Sprintf(" The rule “%s” decides: %s.", r.Rule, r.Verdict)
				break
			}
		}
	}
	return out
}

// detach removes links to other pages.
func (e *evaluated) detach() {
	if e == nil {
		return
	}
	if e.Run = ""; e.Plot != nil {
		for i := range e.Plot.Points {
			e.Plot.Points[i].URL = ""
		}
	}
}

// isEvaluation reports whether a run evaluates a pipeline.
func isEvaluation(info journal.RunInfo) bool {
	return slices.ContainsFunc(info.Shape, func(p journal.Part) bool { return p.Type == reportType })
}

// evaluatedOf reads the report of an evaluation. It returns nil if the piece is no report.
func evaluatedOf(ctx context.Context, v View, info journal.RunInfo, n *piece) (*evaluated, error) {
	e := &evaluated{Run: info.ID, means: scale{0, 1}}
	if n.Type != reportType || json.Unmarshal(n.Content, &e.Report) != nil {
		return nil, nil
	}
	for _, s := range e.Scores {
		e.means.add(s.Estimate)
		for _, l := range s.Slices {
			e.means.add(l.Estimate)
		}
	}
	if e.Against != nil {
		for _, s := range e.Against.Scores {
			e.changes.add(s.Estimate)
			for _, l := range s.Slices {
				e.changes.add(l.Estimate)
			}
		}
		base, err := find(ctx, v, e.Against.With)
		if err == nil {
			e.Base = base.ID
		} else if !isMissing(err) {
			return nil, err
		}
	}
	var err error
	if e.Against != nil {
		if err := e.readTurned(ctx, v, info.ID); err != nil {
			return nil, err
		}
	}
	if err := e.readMissed(ctx, v, info.ID); err != nil {
		return nil, err
	}
	e.Plot, err = plotOf(ctx, v, info, e)
	return e, err
}

// reportOf reads the report of a run that evaluated a pipeline. It returns nil for other runs and for unsuccessful ones.
func reportOf(ctx context.Context, v View, run journal.RunInfo) (*Report, error) {
	if run.State != journal.Done {
		return nil, nil
	}
	n, err := v.Journal.Node(ctx, run.ID, run.Node.String())
	if errors.Is(err, journal.ErrNoNode) {
		return nil, nil // it ended without a report
	}
	if err != nil || n.Type != reportType {
		return nil, err
	}
	var report Report
	if json.Unmarshal(n.Content, &report) != nil {
		return nil, nil
	}
	return &report, nil
}

// pointText describes the result of an evaluation.
func pointText(run string, s Estimate) string {
	return fmt.Sprintf("%s: %.4f (95 %% %.4f to %.4f)", run, s.Mean, s.Low, s.High)
}

// estimate formats a number of a report; signed also adds a sign, for a difference.
func estimate(f float64) string { return fmt.Sprintf("%.4f", f) }

func signed(f float64) string { return strings.Replace(fmt.Sprintf("%+.4f", f), "-", "−", 1) }
