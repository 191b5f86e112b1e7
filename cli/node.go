package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/address"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// shownNode is what show prints of a node, or of a step that made none.
type shownNode struct {
	ID      dag.ID            `json:"id,omitzero"`
	Path    string            `json:"path,omitempty"`
	Type    string            `json:"type,omitempty"`
	Time    time.Time         `json:"time,omitzero"`
	Meta    map[string]string `json:"meta,omitempty"`
	Parents []dag.ID          `json:"parents,omitempty"`
	Failure string            `json:"failure,omitempty"`
	Content json.RawMessage   `json:"content,omitempty"`

	text string
}

var idPrefix = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

// showPlace prints the node, or the step, that is meant by a word.
func (a *app) showPlace(ctx context.Context, s *store, info journal.RunInfo, word string, asJSON, all bool) error {
	steps, err := s.Steps(ctx, info.ID)
	if err != nil {
		return failed("%w", err)
	}
	d, err := s.DAG(ctx, info.ID)
	if err != nil {
		return failed("%w", err)
	}
	var found []shownNode
	if idPrefix.MatchString(word) {
		found = nodesOf(d, steps, word)
	}
	if len(found) == 0 {
		if found, err = stepsOf(ctx, s, info.ID, d, steps, word); err != nil {
			return err
		}
	}
	if len(found) > 1 {
		var names []string
		for _, n := range found[:min(len(found), 5)] {
			names = append(names, fmt.Sprintf("%s %s", short(n.ID), n.Path))
		}
		return fmt.Errorf("%q fits %d places of run %s: name one by its id or its whole path: %s", word, len(found), info.ID, strings.Join(names, ", "))
	}
	shown := found[0]
	if !all {
		own := dag.OwnContent(string(shown.Content), shown.Meta)
		if shown.Content = json.RawMessage(own); own == "" {
			shown.Content = nil
		}
	} else if shown.text == dag.OwnContent(string(shown.Content), shown.Meta) {
		shown.text = string(shown.Content)
	}
	if asJSON {
		return output(printJSON(a.Stdout, shown))
	}
	return output(shown.print(a.Stdout))
}

// nodesOf returns the nodes whose id begins with a prefix.
func nodesOf(d dag.DAG, steps []journal.Step, prefix string) []shownNode {
	paths := map[dag.ID]string{}
	for _, s := range steps {
		paths[s.Node] = s.Path
	}
	var found []shownNode
	for n := range d.Nodes() {
		if strings.HasPrefix(n.ID().String(), prefix) {
			found = append(found, nodeOf(n, paths[n.ID()]))
		}
	}
	return found
}

func nodeOf(n *dag.Node, path string) shownNode {
	shown := shownNode{ID: n.ID(), Path: path, Type: n.Type(), Time: n.Time(), Meta: n.Meta(), Content: n.Content(), text: n.Text()}
	for _, p := range n.Parents() {
		shown.Parents = append(shown.Parents, p.ID())
	}
	return shown
}

// stepsOf returns what the steps hold that have a path, or whose path ends with it.
func stepsOf(ctx context.Context, s *store, run string, d dag.DAG, steps []journal.Step, path string) ([]shownNode, error) {
	matching := func(fits func(journal.Step) bool) []journal.Step {
		return slices.DeleteFunc(slices.Clone(steps), func(s journal.Step) bool { return !fits(s) })
	}
	fits := matching(func(s journal.Step) bool { return s.Path == path })
	if len(fits) == 0 {
		fits = matching(func(s journal.Step) bool { return strings.HasSuffix(s.Path, "/"+path) })
	}
	if len(fits) == 0 {
		near := suggest.Closest(path, func(yield func(string) bool) {
			for _, s := range steps {
				if !yield(s.Path) || !yield(address.Last(s.Path)) {
					return
				}
			}
		})
		if near != "" {
			return nil, fmt.Errorf("run %s has no step or node %q: did you mean %s?", run, path, near)
		}
		return nil, fmt.Errorf("run %s has no step or node %q: show without it lists them", run, path)
	}
	var found []shownNode
	for _, step := range fits {
		if n := d.Node(step.Node); n != nil {
			found = append(found, nodeOf(n, step.Path))
			continue
		}
		shown := shownNode{Path: step.Path, Time: step.Time}
		if !step.Recorded {
			shown.Failure = "it has no result"
		} else {
			rec, err := s.Record(ctx, run, step.Path, step.Kind)
			if err != nil {
				return nil, failed("%w", err)
			}
			shown.record(rec)
		}
		found = append(found, shown)
	}
	return found, nil
}

func (n *shownNode) record(rec stone.Record) {
	n.Content, n.Meta = rec.Content, rec.Meta
	if f := rec.Failure; f != nil {
		n.Failure = f.Kind + ": " + f.Reason
	}
	n.text = dag.OwnContent(string(n.Content), n.Meta)
	var words string
	if json.Unmarshal(n.Content, &words) == nil {
		n.text = words
	}
}

// print prints a node for people: what is known of it, then its text.
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
	say("step", n.Path)
	say("type", n.Type)
	if !n.Time.IsZero() {
		say("time", n.Time.Local().Format(time.DateTime))
	}
	for _, key := range slices.Sorted(maps.Keys(n.Meta)) {
		say("meta", key+": "+n.Meta[key])
	}
	for _, id := range n.Parents {
		say("parent", id.String())
	}
	say("failure", n.Failure)
	if shown := pretty(n.text); shown != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.Join(text.Lines(shown), "\n"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// pretty indents what is a JSON object or list.
func pretty(s string) string {
	var out bytes.Buffer
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		if json.Indent(&out, []byte(s), "", "  ") == nil {
			return out.String()
		}
	}
	return s
}
