package view

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// Patterns for the names of an agent's steps, and for the name suffixes of a call's attempts.
var (
	turnStep    = regexp.MustCompile(`^turn-([0-9]{1,9})$`)
	toolStep    = regexp.MustCompile(`^tool-([0-9]{1,9})-([0-9]{1,9})$`)
	attemptStep = regexp.MustCompile(` [0-9]+$`)
)

// describe adds to a row the action of an agent's or a call's step.
func (r *Run) describe(ctx context.Context, row *Row, s *journal.Step) error {
	switch {
	case s.Kind != "step":
		return nil
	case Turn(*s) > 0 && s.Recorded:
		reply, err := r.reply(ctx, s.Path)
		if reply != nil {
			row.Did, row.By = did(reply), By(reply)
		}
		return err
	case IsToolCall(*s):
		return r.describeTool(ctx, row, s)
	case attemptStep.MatchString(s.Name) && s.Recorded:
		return r.describeAttempt(ctx, row, s)
	}
	return nil
}

// describeTool describes a tool call. It determines from the result whether the call failed, because even a failed call has a
// result, which the model reads before it continues.
func (r *Run) describeTool(ctx context.Context, row *Row, s *journal.Step) error {
	number := toolStep.FindStringSubmatch(s.Name)
	reply, err := r.reply(ctx, strings.TrimSuffix(s.Path, s.Name)+"turn-"+number[1])
	if err != nil {
		return err
	}
	if reply != nil {
		var i int
		if _, err := fmt.Sscan(number[2], &i); err == nil && i >= 1 && i <= len(reply.ToolCalls) {
			c := reply.ToolCalls[i-1]
			row.Did = strings.TrimSpace(c.Name + " " + Argument(c))
		}
	}
	if !s.Recorded {
		return nil
	}
	outcome, err := OutcomeOf(ctx, r.journal, r.ID, s.Path)
	if err != nil {
		return err
	}
	if outcome != nil && outcome.Failed {
		const most = 200 // maximum width in columns
		row.State, row.Reason = Failed, "failed: "+text.Cut(text.Line(strings.TrimSpace(outcome.Text)), most)
	}
	return nil
}

// telling contains the names of arguments that usually distinguish the calls of a tool.
var telling = []string{"path", "file", "command", "query", "url", "name", "title", "question"}

// Argument returns the value of the argument that distinguishes a tool call: an argument with a name in telling, or otherwise the
// first text.
func Argument(c llm.ToolCall) string {
	const most = 60 // maximum width in columns
	short := func(s string) string { return text.Cut(text.Line(strings.TrimSpace(s)), most) }
	if c.InputText != "" {
		return short(c.InputText)
	}
	var found string
	in := json.NewDecoder(bytes.NewReader(c.Input))
	if opening, err := in.Token(); err != nil || opening != json.Delim('{') {
		return ""
	}
	for at := len(telling); in.More() && at > 0; {
		var value any
		key, err := in.Token()
		if err != nil || in.Decode(&value) != nil {
			break
		}
		given, _ := value.(string)
		name, _ := key.(string)
		rank := slices.Index(telling, name)
		if given != "" && (found == "" || rank >= 0 && rank < at) {
			found = given
			if rank >= 0 {
				at = rank
			}
		}
	}
	return short(found)
}

// did returns the names of the tools that a turn has called, without duplicates. If the turn has called none, it was the answer.
func did(reply *llm.Reply) string {
	var names []string
	count := map[string]int{}
	for _, c := range reply.ToolCalls {
		if count[c.Name]++; count[c.Name] == 1 {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return "answer"
	}
	for i, name := range names {
		if n := count[name]; n > 1 {
			names[i] = fmt.Sprintf("%s ×%d", name, n)
		}
	}
	return "calls " + strings.Join(names, ", ")
}

// reply returns the reply in a turn, or nil if there is none at the path.
func (r *Run) reply(ctx context.Context, path string) (*llm.Reply, error) {
	if r.turnAt == path {
		return r.lastReply, nil
	}
	reply, err := ReplyOf(ctx, r.journal, r.ID, path)
	if err != nil {
		return nil, err
	}
	r.turnAt, r.lastReply = path, reply
	return reply, nil
}

// describeAttempt describes the call's verdict on the answer of an attempt. The attempt is done only if its answer was accepted.
func (r *Run) describeAttempt(ctx context.Context, row *Row, s *journal.Step) error {
	above := address.Parent(s.Path)
	c, err := r.Call(ctx, above)
	if err != nil {
		return err
	}
	if c == nil {
		rec, err := Record(ctx, r.journal, r.ID, s.Path, s.Kind)
		if rec != nil && rec.Failure == nil && isReply(rec.Content) {
			row.State = Answer // the call has not ended
		}
		return err
	}
	for i, name := range AttemptSteps(c) {
		if address.Child(above, name, 1) != s.Path {
			continue
		}
		a := c.Tried[i]
		row.Cap = a.Cap
		if a.Repair {
			row.Cap += " repair"
		} else if a.Number > 1 {
			row.Cap = fmt.Sprint(row.Cap, " ", a.Number)
		}
		if s.Failure == "" {
			row.State, row.Reason = Verdict(c, a), a.Failure
		}
		return nil
	}
	if strings.HasPrefix(s.Name, "judge ") {
		row.Cap = address.Readable(s.Name)
	}
	return nil
}

// isReply reports whether the content of a step is a reply from a capability.
func isReply(content []byte) bool {
	var a answer
	return json.Unmarshal(content, &a) == nil && a.Reply != nil && a.Reply.Type != ""
}

// Chosen returns the path of the attempt whose answer is the result of the call at a path, or "" if there is none.
func (r *Run) Chosen(ctx context.Context, path string) (string, error) {
	c, err := r.Call(ctx, path)
	if c == nil {
		return "", err
	}
	for i, name := range AttemptSteps(c) {
		if Verdict(c, c.Tried[i]) == Chosen {
			return address.Child(path, name, 1), nil
		}
	}
	return "", nil
}

// Verdict returns the state of a call's attempt, which says whether the answer was accepted.
func Verdict(c *call.Record, a call.Attempt) State {
	switch {
	case a.Cancelled:
		return Canceled
	case a.Failure == reasons.MustFailed || a.Failure == reasons.LowScore:
		return Rejected
	case a.Failure != "":
		return Failed
	case c.Failure == "" && a.Cap == c.Cap:
		return Chosen
	}
	return Answer
}

// AttemptSteps returns the step name for each entry of c.Tried.
func AttemptSteps(c *call.Record) []string {
	names := make([]string, len(c.Tried))
	name, repairs := "", 0
	for i, a := range c.Tried {
		if repairs++; a.Repair {
			names[i] = address.RepairStep(name, repairs)
			continue
		}
		name, repairs = address.AttemptStep(a.Cap, a.Number), 0
		names[i] = name
	}
	return names
}

// Call returns the record of an ended call, or nil if there is none at the path.
func (r *Run) Call(ctx context.Context, path string) (*call.Record, error) {
	if r.callAt == path {
		return r.lastCall, nil
	}
	rec, err := Record(ctx, r.journal, r.ID, path, "leaf")
	if err != nil {
		return nil, err
	}
	var c *call.Record
	if rec != nil {
		c = call.RecordIn(rec.Meta)
	}
	r.callAt, r.lastCall = path, c
	return c, nil
}

// Turn returns the number of an agent's turn, counted from 1. It returns 0 for any other step.
func Turn(s journal.Step) int {
	m := turnStep.FindStringSubmatch(s.Name)
	if m == nil || s.Kind != "step" {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // cannot fail: m[1] consists of few digits
	return n
}

// IsToolCall reports whether a step is an agent's call of a tool.
func IsToolCall(s journal.Step) bool { return s.Kind == "step" && toolStep.MatchString(s.Name) }
