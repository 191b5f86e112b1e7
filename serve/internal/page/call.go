package page

import (
	"context"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// called is a call as a page shows it: its record, with the answer of each attempt.
type called struct {
	*call.Record
	Run  string
	Rows []attempt
	Same *view.Sent // the request that all attempts have in common; nil if they differ or are not recorded
	Span span       // span of the attempts with known steps
}

// An attempt is an invocation with its recorded step, if that was found.
type attempt struct {
	call.Attempt
	Step   *journal.Step
	Bar    *bar
	State  view.State
	Sent   *view.Sent // the request; nil if not recorded
	Answer string     // in readable form
	Cut    int        // number of bytes omitted
	Same   bool       // equal to the previous attempt's answer
}

// Why returns the failure of an attempt, without the reasons that its checks and findings list.
func (a attempt) Why() string {
	switch {
	case len(a.Verdicts) > 0 && a.Failure == reasons.MustFailed, len(a.Findings) > 0:
		return ""
	case len(a.Verdicts) > 0 && a.Failure == reasons.LowScore:
		score, _, _ := strings.Cut(a.Error, ": ")
		return score
	}
	return a.Error
}

// Note distinguishes attempts by the same capability.
func (a attempt) Note() string {
	switch {
	case a.Repair:
		return "repair"
	case a.Number > 1:
		return fmt.Sprintf("attempt %d", a.Number)
	}
	return ""
}

// Short reports whether the answer is shown unfolded.
func (a attempt) Short() bool { return len(a.Answer) < 500 && !a.Same }

// Verdict returns the state of an attempt, and the words that describe it or its failure.
func (a attempt) Verdict() [2]string {
	switch {
	case a.State == view.Answer:
		return [2]string{string(a.State), "passed, not chosen"}
	case a.Failure != "" && a.State != view.Canceled:
		return [2]string{string(a.State), a.Failure}
	}
	return [2]string{string(a.State), string(a.State)}
}

const (
	mostAttempts = 100     // maximum number of attempts shown for a call
	answerBytes  = 4 << 10 // maximum bytes of an answer shown on the page of its call
)

// calledOf reads the attempts of the call at the path of a step; the path is "" if unknown.
func calledOf(ctx context.Context, j journal.Journal, run, path string, r *call.Record) (*called, error) {
	c := &called{Record: r, Run: run}
	steps := map[string]*journal.Step{}
	if path != "" && r.From == "" {
		o, err := j.Outline(ctx, run)
		if err != nil {
			return nil, err
		}
		const most = 1000 // maximum number of attempts, judges and checks
		below, err := o.Level(ctx, path, journal.Page{Limit: most})
		if err != nil {
			return nil, err
		}
		for _, b := range below.Branches {
			steps[b.Path] = b.Step
		}
	}
	names := view.AttemptSteps(r)
	for i, a := range r.Tried[:min(len(r.Tried), mostAttempts)] {
		row := attempt{Attempt: a, State: view.Verdict(r, a)}
		if row.Step = steps[address.Child(path, names[i], 1)]; row.Step != nil {
			c.Span.add(row.Step.Started, row.Step.Ended)
			if err := row.read(ctx, j, run); err != nil {
				return nil, err
			}
		}
		c.Rows = append(c.Rows, row)
	}
	for i, row := range c.Rows {
		if row.Step != nil {
			c.Rows[i].Bar = c.Span.bar(row.Step.Started, row.Step.Ended)
		}
		c.Rows[i].Same = i > 0 && row.Answer != "" && row.Answer == c.Rows[i-1].Answer
		if i == 0 {
			c.Same = row.Sent
		} else if c.Same != nil && (row.Sent == nil || row.Sent.System != c.Same.System || row.Sent.Input != c.Same.Input) {
			c.Same = nil
		}
	}
	return c, nil
}

// read reads the prompt and the answer of an attempt.
func (a *attempt) read(ctx context.Context, j journal.Journal, run string) error {
	if !a.Step.Recorded {
		return nil
	}
	rec, err := view.Record(ctx, j, run, a.Step.Path, a.Step.Kind)
	if err != nil || rec == nil {
		return err
	}
	left := allowance(2 * answerBytes)
	if a.Sent = view.SentIn(*rec); a.Sent != nil {
		short := *a.Sent
		short.System, short.Input = left.take(short.System), left.take(short.Input)
		a.Sent = &short
	}
	left = answerBytes
	whole := text.JSON(string(view.OutIn(rec.Content)))
	a.Answer = left.take(whole)
	a.Cut = len(whole) - len(a.Answer)
	return nil
}

// Asked returns the number of capabilities that were called.
func (c *called) Asked() int {
	seen := map[string]bool{}
	for _, a := range c.Tried {
		seen[a.Cap] = true
	}
	return len(seen)
}

// Refused returns the number of attempts that failed and were not cancelled.
func (c *called) Refused() (n int) {
	for _, a := range c.Tried {
		if a.Failure != "" && !a.Cancelled {
			n++
		}
	}
	return n
}

// Hidden returns the number of attempts that are not shown.
func (c *called) Hidden() int { return len(c.Tried) - len(c.Rows) }
