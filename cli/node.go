package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// shownNode is the output of the command show for a node, or for a step that has created no node.
type shownNode struct {
	ID      dag.ID            `json:"id,omitzero"`
	Path    string            `json:"path,omitempty"`
	Type    string            `json:"type,omitempty"`
	Time    time.Time         `json:"time,omitzero"`
	Meta    map[string]string `json:"meta,omitempty"`
	Parents []dag.ID          `json:"parents,omitempty"`
	Failure string            `json:"failure,omitempty"`
	Content json.RawMessage   `json:"content,omitempty"`
	// Asked is the request that an invocation sent to its capability.
	Asked *view.Sent `json:"asked,omitempty"`
	// Question is the question that the step asked.
	Question *journal.Question `json:"question,omitempty"`

	text   string
	around bool // not a step, but a place that contains steps
}

var idPrefix = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

// place returns the node or step that a word refers to. If all is set, its content is complete.
func (s *store) place(ctx context.Context, info journal.RunInfo, word string, all bool) (shown shownNode, err error) {
	steps, err := s.Steps(ctx, info.ID)
	if err != nil {
		return shown, failed("%w", err)
	}
	if shown, err = placeOf(ctx, s, info.ID, steps, word); err != nil {
		return shown, err
	}
	questions, err := s.Questions(ctx, info.ID)
	if err != nil {
		return shown, failed("%w", err)
	}
	for i, q := range questions {
		if q.Path == shown.Path {
			shown.Question = &questions[i]
		}
	}
	if !all {
		own := dag.OwnContent(string(shown.Content), shown.Meta)
		if shown.Content = json.RawMessage(own); own == "" {
			shown.Content = nil
		}
		if shown.text == own {
			shown.text = text.WithoutBase64(own)
		}
	} else if shown.text == dag.OwnContent(string(shown.Content), shown.Meta) {
		shown.text = string(shown.Content)
	}
	return shown, nil
}

// placeOf returns the node whose id begins with the given word, or the content of the step whose path equals the word or ends
// with it.
func placeOf(ctx context.Context, s *store, run string, steps []journal.Step, word string) (shownNode, error) {
	if idPrefix.MatchString(word) {
		n, err := s.Node(ctx, run, word)
		switch {
		case err == nil:
			path := "" // path of the step that created the node
			for _, s := range steps {
				if s.Node == n.ID {
					path = s.Path
				}
			}
			return nodeOf(n, path), nil
		case errors.As(err, new(*journal.AmbiguousError)):
			return shownNode{}, err
		case !errors.Is(err, journal.ErrNoNode):
			return shownNode{}, failed("%w", err)
		}
	}
	steps = journal.Current(steps)
	path, err := spotOf(run, steps, labelsOf(ctx, s, run), word)
	if err != nil {
		return shownNode{}, err
	}
	i := slices.IndexFunc(steps, func(s journal.Step) bool { return s.Path == path })
	if i < 0 {
		return shownNode{Path: path, around: true}, nil
	}
	step := steps[i]
	if step.Node != (dag.ID{}) {
		n, err := s.Node(ctx, run, step.Node.String())
		if err != nil {
			return shownNode{}, failed("%w", err)
		}
		return nodeOf(n, step.Path), nil
	}
	shown := shownNode{Path: step.Path, Time: step.Time}
	if !step.Recorded {
		shown.Failure = "it has no result"
		return shown, nil
	}
	rec, err := s.Record(ctx, run, step.Path, step.Kind)
	if err != nil {
		return shownNode{}, failed("%w", err)
	}
	shown.Asked, shown.Content, shown.Meta = view.SentIn(rec), rec.Content, rec.Meta
	if f := rec.Failure; f != nil {
		shown.Failure = string(f.Kind) + ": " + f.Reason
	}
	if shown.text = textOf(rec.Content, rec.Meta); shown.Asked != nil {
		shown.text = string(view.OutIn(rec.Content))
	}
	return shown, nil
}

func nodeOf(n journal.NodeInfo, path string) shownNode {
	return shownNode{
		ID: n.ID, Path: path, Type: n.Type, Time: n.Time, Meta: n.Meta, Parents: n.Parents,
		Content: n.Content, text: textOf(n.Content, n.Meta),
	}
}

// textOf is like dag.Node.Text, but for content without a node.
func textOf(content json.RawMessage, meta map[string]string) string {
	var words string
	if json.Unmarshal(content, &words) == nil {
		return words
	}
	var object struct {
		Text *string `json:"text"`
	}
	if json.Unmarshal(content, &object) == nil && object.Text != nil {
		return *object.Text
	}
	return dag.OwnContent(string(content), meta)
}

// print prints a node as text: first its properties, then its content.
func (n shownNode) print(w io.Writer) error {
	var b strings.Builder
	say := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-9s %s\n", name, text.Line(value))
		}
	}
	if n.ID != (dag.ID{}) {
		say("node", n.ID.String())
	}
	say("step", address.Readable(n.Path))
	say("type", n.Type)
	if !n.Time.IsZero() {
		say("time", n.Time.Local().Format(time.DateTime))
	}
	record := call.RecordIn(n.Meta)
	for _, key := range slices.Sorted(maps.Keys(n.Meta)) {
		if (record == nil || key != terms.CallNote) && (n.Asked == nil || key != "answer") {
			say("meta", key+": "+n.Meta[key])
		}
	}
	if record != nil {
		sayCall(say, record)
	}
	for _, id := range n.Parents {
		say("parent", id.String())
	}
	say("failure", n.Failure)
	if q := n.Question; q != nil {
		fmt.Fprintf(&b, "%-9s %s: %s\n", "question", text.Line(q.Name), strings.Join(text.Lines(q.Text), "\n  "))
		if !q.Open() {
			fmt.Fprintf(&b, "%-9s %s, %s\n", "answer", answered(*q), q.Answered.Local().Format(time.DateTime))
		}
		if !q.Open() && !q.Given.IsZero() {
			fmt.Fprintf(&b, "%-9s since %s\n", "standing", q.Given.Local().Format(time.DateTime))
		}
	}
	if n.Asked != nil {
		for _, part := range [][2]string{{"system", n.Asked.System}, {"asked", n.Asked.Input}, {"schema", string(n.Asked.Schema)}} {
			if part[1] != "" {
				fmt.Fprintf(&b, "\n%s\n  %s\n", part[0], strings.Join(text.Lines(pretty(part[1])), "\n  "))
			}
		}
		if n.text != "" {
			fmt.Fprint(&b, "\nanswered")
		}
	}
	if shown := pretty(n.text); shown != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.Join(text.Lines(shown), "\n"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// pretty returns a JSON object or list indented, and any other text unchanged.
func pretty(s string) string {
	var out bytes.Buffer
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		if json.Indent(&out, []byte(s), "", "  ") == nil {
			return out.String()
		}
	}
	return s
}

// sayCall prints the record of a call: the capability that answered, and each attempt with the results of its checks.
func sayCall(say func(name, value string), r *call.Record) {
	asked := slices.DeleteFunc([]string{r.Intent, r.Strategy}, func(s string) bool { return s == "" })
	end := fmt.Sprintf("%s answered in %s", strings.TrimSpace(r.Cap+" "+r.Version), text.Plural(len(r.Tried), "attempt"))
	if r.Failure != "" {
		end = fmt.Sprintf("%s after %s", r.Failure, text.Plural(len(r.Tried), "attempt"))
	}
	if r.From != "" {
		end += " of the run " + r.From
	}
	say("call", strings.Join(append(asked, end), ", "))
	if r.Disagreed != "" {
		say("", "disagreed: "+r.Disagreed)
	}
	if r.Input != nil {
		say("input", fmt.Sprintf("score %.3g", r.Input.Score))
		sayVerdicts(say, r.Input.Verdicts)
	}
	for _, a := range r.Tried {
		name := fmt.Sprintf("%s %d", a.Cap, a.Number)
		if a.Repair {
			name += " repair"
		}
		switch {
		case a.Cancelled:
			name += ": canceled"
		case a.Failure != "":
			name += ": " + a.Failure
		default:
			name += ": passed"
		}
		if a.Score != nil {
			name += fmt.Sprintf(", score %.3g", *a.Score)
		}
		switch method := a.Usage.Sandbox; method {
		case "":
		case "unconfined":
			name += ", " + method
		default:
			name += ", confined by " + method
		}
		say("attempt", name)
		sayVerdicts(say, a.Verdicts)
		for _, f := range a.Findings {
			say("", "  "+f.String())
		}
	}
	for _, j := range r.Rejected {
		say("not asked", j.Cap+": "+j.Reason)
	}
}

func sayVerdicts(say func(name, value string), all []call.Verdict) {
	for _, v := range all {
		line := fmt.Sprintf("  %s %s %s", v.As, v.By, v.State)
		if v.Score != nil {
			line += fmt.Sprintf(", %.3g", *v.Score)
		}
		if v.Why != "" {
			line += ": " + v.Why
		}
		say("", line)
	}
}
