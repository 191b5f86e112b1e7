package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// shownBytes is the maximum size of a content that is shown, unless the whole content is requested.
const shownBytes = 64 << 10

// A piece is a node, or the record of a step without a node.
type piece struct {
	journal.NodeInfo
	Run     string
	Step    *journal.Step // the step that created it; nil if unknown
	Above   []crumb       // breadcrumbs that lead to the step
	Failure string        // failure of the step
	Facts   [][2]string
	Text    string // the content in readable form
	Cut     int    // number of bytes omitted
	Talk    *talk
	Call    *called
	Sent    *view.Sent // request sent to the capability
	Eval    *evaluated
	Asked   *journal.Question // question that the step asked
	Readers []reader
	Inside  int    // number of steps inside its step, if known
	Paid    bool   // its step may have been billed
	AllURL  string // address of the complete page
	Forks   bool   // the run can be forked at this step on the page
	Typed   bool   // the run can be forked at this step with the command
	Child   string // run that its step started, if it is in the journal
}

// A reader is a node that a step created after reading this one.
type reader struct {
	ID   dag.ID
	Type string
}

// node shows a node.
func (p *pages) node(w http.ResponseWriter, r *http.Request, v View) error {
	info, err := find(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return err
	}
	n, err := nodeOf(r.Context(), v, info, r.PathValue("node"))
	if err != nil {
		return err
	}
	if info.Steps <= view.Small {
		steps, err := v.Journal.Steps(r.Context(), info.ID)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(steps, func(s journal.Step) bool { return s.Node == n.ID }); i >= 0 {
			n.Step = &steps[i]
		}
		if n.Readers, err = readersOf(r.Context(), v, info.ID, n.ID); err != nil {
			return err
		}
	}
	return p.showPiece(w, r, v, info, n)
}

// step shows the result of a step.
func (p *pages) step(w http.ResponseWriter, r *http.Request, v View) error {
	info, err := find(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return err
	}
	path := r.URL.Query().Get("path")
	s, inside, err := stepAt(r.Context(), v, info, path)
	if err != nil {
		return err
	}
	if s == nil {
		return missing("Run %q has no step %q.", info.ID, path)
	}
	n, err := recordOf(r.Context(), v, info, *s)
	if err != nil {
		return err
	}
	n.Inside = inside
	if n.ID != (dag.ID{}) && info.Steps <= view.Small {
		if n.Readers, err = readersOf(r.Context(), v, info.ID, n.ID); err != nil {
			return err
		}
	}
	return p.showPiece(w, r, v, info, n)
}

func (p *pages) showPiece(w http.ResponseWriter, r *http.Request, v View, info journal.RunInfo, n *piece) (err error) {
	all := r.URL.Query()
	limit := shownBytes
	if all.Get("all") != "" {
		limit = len(n.Content) * 2 // indenting makes the text longer
	} else {
		all.Set("all", "1")
		n.AllURL = r.URL.Path + "?" + all.Encode()
	}
	left := n.read(max(limit, shownBytes))
	if n.Step != nil {
		if n.Above, err = crumbs(r.Context(), view.LanesOf(v.Journal, n.Run), up(n.Step.Path)); err != nil {
			return err
		}
	}
	if n.Step != nil && (n.Step.Kind == "leaf" || n.Step.Kind == "step") && info.State != journal.Running {
		n.Forks = v.Fork != nil && v.Runs(info) && n.Step.Recorded
		n.Typed = !n.Forks && view.Dir(info) != "" && !strings.Contains(n.Step.Path, "'")
	}
	if n.Step != nil && n.Step.Kind == "leaf" {
		if n.Talk, err = agentTalk(r.Context(), v, n.Run, n.Step.Path, n.Talk, &left); err != nil {
			return err
		}
		if n.Talk != nil && n.Step.Recorded { // the step may have failed without a result
			n.Talk.Running = false
		}
		n.dropSaid()
	}
	if record := call.RecordIn(n.Meta); record != nil {
		path := ""
		if n.Step != nil {
			path = n.Step.Path
		}
		if n.Call, err = calledOf(r.Context(), v.Journal, n.Run, path, record); err != nil {
			return err
		}
	}
	if n.Eval, err = evaluatedOf(r.Context(), v, info, n); err != nil {
		return err
	}
	title := n.Type
	if n.Step != nil {
		if n.Asked, err = askedAt(r.Context(), v, info.ID, n.Step.Path); err != nil {
			return err
		}
		title = address.Readable(n.Step.Path)
		if child := cmp.Or(n.Meta["child"], n.Step.Name); strings.HasPrefix(child, childPrefix) {
			if started, err := known(r.Context(), v, child); err != nil {
				return err
			} else if started != nil {
				n.Child = child
			}
		}
		n.Paid = view.Paid(info, journal.Branch{Step: n.Step, Below: n.Inside}, n.Asked).Attempts > 0
	}
	f := frame{Title: title + " · " + n.Run, Here: "runs", Body: n}
	if n.Step != nil && !n.Step.Recorded && !view.Over(info.State) {
		f = p.live(f, "/runs/"+url.PathEscape(info.ID)+"/events?said=true")
	}
	return v.show(w, r, "node", f)
}

// nodeOf reads a node of a run.
func nodeOf(ctx context.Context, v View, info journal.RunInfo, id string) (*piece, error) {
	n, err := v.Journal.Node(ctx, info.ID, id)
	if errors.Is(err, journal.ErrNoNode) || errors.As(err, new(*journal.AmbiguousError)) {
		return nil, missing("Run %q has no node %.64q.", info.ID, id)
	}
	return &piece{NodeInfo: n, Run: info.ID}, err
}

// recordOf reads the record of a step.
func recordOf(ctx context.Context, v View, info journal.RunInfo, s journal.Step) (n *piece, err error) {
	n = &piece{Run: info.ID}
	if s.Node != (dag.ID{}) {
		n, err = nodeOf(ctx, v, info, s.Node.String())
	} else if s.Recorded {
		rec, failed := v.Journal.Record(ctx, info.ID, s.Path, s.Kind)
		n.Type, n.Content, n.Meta, n.Time, err = rec.Type, rec.Content, rec.Meta, rec.Time, failed
	}
	if err != nil {
		return nil, err
	}
	if n.Step = &s; s.Failure != "" {
		n.Failure = s.Failure + ": " + s.Reason
	}
	return n, nil
}

// pieceOf reads a node that another page shows in part.
func pieceOf(ctx context.Context, v View, info journal.RunInfo, id string) (*piece, error) {
	n, err := nodeOf(ctx, v, info, id)
	if err != nil {
		return nil, err
	}
	const part = 4 << 10
	n.read(part)
	n.AllURL = nodeURL(info.ID, n.ID)
	return n, nil
}

// readersOf returns at most 50 of the nodes created by steps that read a node.
func readersOf(ctx context.Context, v View, run string, id dag.ID) (out []reader, err error) {
	d, err := v.Journal.DAG(ctx, run)
	if err != nil {
		return nil, err
	}
	const most = 50
	for n := range d.Nodes() {
		if slices.ContainsFunc(n.Parents(), func(p *dag.Node) bool { return p.ID() == id }) && len(out) < most {
			out = append(out, reader{n.ID(), n.Type()})
		}
	}
	return out, nil
}

// dropSaid omits an agent's content if it is the same as the last message of its conversation.
func (n *piece) dropSaid() {
	var result map[string]json.RawMessage
	if n.Talk == nil || json.Unmarshal([]byte(n.Text), &result) != nil || len(result) != 1 {
		return
	}
	var said string
	if last := n.Talk.Messages; len(last) > 0 && json.Unmarshal(result["text"], &said) == nil && said == last[len(last)-1].Text {
		n.Text = ""
	}
}

// read sets the texts of a piece to at most limit bytes in total, and returns the number of bytes left.
func (n *piece) read(limit int) allowance {
	left := allowance(limit)
	n.Talk = talkOf(n.Content, &left)
	for _, name := range slices.Sorted(maps.Keys(n.Meta)) {
		if !hiddenMeta[name] {
			n.Facts = append(n.Facts, [2]string{name, n.Meta[name]})
		}
	}
	content := dag.OwnContent(string(n.Content), n.Meta)
	if n.ID == (dag.ID{}) {
		if out := view.OutIn([]byte(content)); out != nil {
			content = string(out)
		}
		n.Sent = view.SentIn(step.Record{Content: []byte(n.Content), Meta: n.Meta})
	}
	whole := text.WithoutBase64(text.JSON(content))
	n.Text = left.take(whole)
	n.Cut = len(whole) - len(n.Text)
	return left
}

// hiddenMeta lists the meta keys that a page shows in a special form or not at all.
var hiddenMeta = map[string]bool{terms.CallNote: true, terms.Beside: true, terms.UsageNote: true, "answer": true}

// An allowance is the number of bytes that may still be shown.
type allowance int

// take returns the beginning of s that may still be shown, and reduces the allowance.
func (a *allowance) take(s string) string {
	if n := int(max(*a, 0)); len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	*a -= allowance(len(s))
	return s
}
