package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/step"
	"github.com/stonelayer/stone/x/eval"
	"github.com/stonelayer/stone/x/lab"
)

type letter struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

var (
	ticket = dag.NewType[letter]("ticket")
	draft  = dag.NewType[string]("draft")
	final  = dag.NewType[string]("final")
	sent   = dag.NewType[string]("sent")
)

// A desk answers letters of two kinds with a prompt each. Its server counts the requests.
type desk struct {
	prompts map[string]string
	checks  []string
	served  atomic.Int32
	also    []stone.Ashlar // after the draft
	hear    func(text string)
	id      string // of the evaluation
}

func newDesk(billing string, also ...stone.Ashlar) *desk {
	return &desk{prompts: map[string]string{"billing": billing, "bug": "Answer."}, also: also}
}

const price = 0.004 // of a request

func (d *desk) pipeline() stone.Ashlar {
	server := script.Func(func(_ int, req *llm.Request) script.Answer {
		d.served.Add(1)
		var l letter
		if err := json.Unmarshal([]byte(req.Messages[0].Text()), &l); err != nil {
			return script.Text(err.Error())
		}
		text := strings.ToUpper(l.Text)
		if d.hear != nil {
			d.hear(text)
		}
		if strings.Contains(req.System, "kindly") {
			text += ", please"
		}
		return script.JSON(text)
	})
	var branches []stone.Branch
	for _, kind := range []string{"billing", "bug"} {
		answer := model.New(call.Metadata{ID: "model/" + kind, Intents: []string{"answer/" + kind}, Cost: call.Cost{USD: price}}, model.Config{Model: server, Prompt: d.prompts[kind]})
		app := &call.Applicator{Registry: call.NewRegistry(answer), Checks: map[string]call.Check{"full": func(context.Context, call.Subject) error { return nil }}}
		spec := call.Spec{Applicator: app, Intent: "answer/" + kind, Input: call.From(ticket), Done: call.Done{Must: d.checks}}
		branches = append(branches, stone.Case(kind, call.New(kind, draft, spec)))
	}
	return stone.Seq("desk", append([]stone.Ashlar{stone.Match("route", stone.On(ticket, func(l letter) string { return l.Kind }), branches...)}, d.also...)...)
}

// record runs the desk n times, every fifth letter is about billing, and returns the requests of both kinds.
func (d *desk) record(t testing.TB, j journal.Journal, n int, frontend ask.Frontend) (billing, bug int) {
	t.Helper()
	p := d.pipeline()
	for i := range n {
		l := letter{"bug", fmt.Sprint("letter ", i)}
		if bug++; i%5 == 0 {
			l.Kind = "billing"
			bug, billing = bug-1, billing+1
		}
		in, err := ticket.Append(dag.DAG{}, l)
		if err != nil {
			t.Fatal(err)
		}
		cfg := stone.Config{RunID: fmt.Sprintf("r%04d", i), Input: in, Frontend: frontend, Recorder: journal.Keep(j, journal.Options{Labels: map[string]string{"env": "prod"}})}
		if _, err := stone.Run(budget.With(t.Context(), budget.New(budget.Limits{})), p, cfg); err != nil {
			t.Fatal(err)
		}
	}
	return billing, bug
}

// evaluate evaluates the desk over the recorded runs.
func (d *desk) evaluate(t testing.TB, j journal.Journal, grant []string, scores ...string) eval.Report {
	t.Helper()
	d.served.Store(0)
	runs := lab.Part(j, journal.Query{Pipeline: "desk", Labels: map[string]string{"env": "prod"}}, grant)
	ctx := past.WithRuns(t.Context(), runs)
	if scores == nil {
		scores = []string{"exact"}
	}
	scorers, err := eval.Read(nil, scores...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := eval.Run(ctx, eval.Config{Pipeline: d.pipeline(), Scorers: scorers}, stone.Config{RunID: d.id, Recorder: journal.Keep(j, journal.Options{}), Frontend: past.Asking(ctx, nil)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOnePromptChanged changes the prompt of one branch: its requests are the only new ones.
func TestOnePromptChanged(t *testing.T) {
	j := memdb.New(t)
	runs := 1000
	if testing.Short() {
		runs = 100
	}
	billing, bug := newDesk("Answer.").record(t, j, runs, nil)
	same := newDesk("Answer.")
	if r := same.evaluate(t, j, nil); same.served.Load() != 0 || r.Cost.USD != 0 || r.Scores[0].Right != runs || r.Recorded["new"] != 0 || r.Recorded["requests"] != runs {
		t.Errorf("the same pipeline asked %d times: %+v %+v", same.served.Load(), r.Recorded, r.Scores)
	}
	checked := newDesk("Answer.")
	checked.checks = []string{"full"}
	if r := checked.evaluate(t, j, nil); checked.served.Load() != 0 || r.Recorded["requests"] != runs {
		t.Errorf("another check asked %d times: %+v", checked.served.Load(), r.Recorded)
	}
	kind := newDesk("Answer kindly.")
	start := time.Now()
	r := kind.evaluate(t, j, nil)
	t.Logf("%d cases in %v:\n%s", r.Cases, time.Since(start), r.Text())
	if n := int(kind.served.Load()); n != billing || r.Recorded["new"] != billing || r.Recorded["requests"] != billing+bug {
		t.Errorf("%d requests arrived, want %d; reported %+v", n, billing, r.Recorded)
	}
	if want := float64(billing) * price; r.Cost.USD < want-1e-9 || r.Cost.USD > want+1e-9 {
		t.Errorf("cost %v, want %v", r.Cost.USD, want)
	}
	if s := r.Against.Scores[0]; s.Lost != billing || s.Gained != 0 || s.P > 1e-3 || r.Against.Cases != runs {
		t.Errorf("turned %d and %d of %d, p = %v", s.Lost, s.Gained, r.Against.Cases, s.P)
	}
	if want := fmt.Sprintf("%d of %d requests were new: $0.8000; 0 cases better, %d worse", billing, runs, billing); !testing.Short() && !strings.Contains(r.Text(), want) {
		t.Errorf("the report does not say %q", want)
	}
}

// sending sends what has been drafted, and counts how often.
func sending(times *atomic.Int32, in dag.Type[string]) stone.Ashlar {
	return stone.Func("send", in, sent, func(_ context.Context, text string) (string, error) {
		times.Add(1)
		return "sent: " + text, nil
	}, stone.Effects(effect.Net))
}

// TestEffects never has an effect again that is not granted.
func TestEffects(t *testing.T) {
	j := memdb.New(t)
	var times atomic.Int32
	billing, bug := newDesk("Answer.", sending(&times, draft)).record(t, j, 20, nil)
	times.Store(0)
	kind := newDesk("Answer kindly.", sending(&times, draft))
	r := kind.evaluate(t, j, nil)
	if s := r.Scores[0]; times.Load() != 0 || s.Right != bug || s.Errors != billing || r.Recorded["needs-effect"] != billing {
		t.Errorf("sent %d times, %+v, %+v", times.Load(), s, r.Recorded)
	}
	if len(r.Failures) != billing || !strings.Contains(r.Failures[0].Why, "needs-effect") {
		t.Errorf("failures %+v", r.Failures)
	}
	if r := kind.evaluate(t, j, []string{"net"}); int(times.Load()) != billing || r.Recorded["needs-effect"] != 0 || r.Scores[0].Wrong != billing {
		t.Errorf("granted, it was sent %d times, %+v", times.Load(), r.Recorded)
	}
}

// editing has a person correct each draft, whose correction is the result.
func editing() stone.Ashlar {
	return stone.Ask("edit", draft, final, func(text string) string { return "Correct this: " + text })
}

type editor struct{}

func (editor) Ask(_ context.Context, q ask.Question) (ask.Answer, error) {
	text := strings.TrimPrefix(q.Text, "Correct this: ")
	if strings.Contains(text, "LETTER 0") || strings.Contains(text, "LETTER 5") {
		text += ", please"
	}
	return ask.Answer{Response: fmt.Sprintf("%q", text), By: "ada"}, nil
}

// TestPerson answers questions as a person did, and takes the correction as the reference.
func TestPerson(t *testing.T) {
	j := memdb.New(t)
	billing, bug := newDesk("Answer.", editing()).record(t, j, 20, editor{})
	same := newDesk("Answer.", editing())
	if r := same.evaluate(t, j, nil); same.served.Load() != 0 || r.Recorded["needs-person"] != 0 || r.Scores[0].Right != billing+bug {
		t.Errorf("%+v %+v", r.Recorded, r.Scores)
	}
	kind := newDesk("Answer kindly.", editing())
	r := kind.evaluate(t, j, nil)
	if s := r.Scores[0]; r.Recorded["needs-person"] != billing || s.Right != bug || s.Errors != billing {
		t.Errorf("%+v %+v", r.Recorded, s)
	}
	r = kind.evaluate(t, j, nil, "testdata/draft.edn")
	got := []int{r.Against.Scores[0].Gained, r.Against.Scores[0].Lost}
	if diff := cmp.Diff([]int{2, billing - 2}, got); diff != "" {
		t.Errorf("gained and lost: %s\n%s", diff, r.Text())
	}
}

// TestSkipped leaves out runs that are no cases, and counts them.
func TestSkipped(t *testing.T) {
	j := memdb.New(t)
	newDesk("Answer.", editing()).record(t, j, 3, editor{})
	p := newDesk("Answer.", editing()).pipeline()
	keep := func(string) step.Recorder {
		return journal.Keep(j, journal.Options{Labels: map[string]string{"env": "prod"}})
	}
	in, err := ticket.Append(dag.DAG{}, letter{"bug", "waits"})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = stone.Run(t.Context(), p, stone.Config{RunID: "waits", Input: in, Recorder: keep("waits")})
	in, err = ticket.Append(dag.DAG{}, letter{"unknown", "fails"})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = stone.Run(t.Context(), p, stone.Config{RunID: "fails", Input: in, Frontend: editor{}, Recorder: keep("fails")})
	canceled, cancel := context.WithCancel(t.Context())
	stops := stone.Seq("desk", stone.New("stop", sent, func(ctx context.Context, _ dag.DAG) (string, error) { cancel(); return "", ctx.Err() }))
	_, _ = stone.Run(canceled, stops, stone.Config{RunID: "canceled", Recorder: keep("canceled")})
	other := stone.Seq("desk", stone.Func0("other", final, func(context.Context) (string, error) { return "x", nil }))
	if _, err := stone.Run(t.Context(), other, stone.Config{RunID: "other", Recorder: keep("other")}); err != nil {
		t.Fatal(err)
	}
	r := newDesk("Answer.", editing()).evaluate(t, j, nil)
	want := map[string]int{"requests": 3, "new": 0, "left out: waiting": 1, "left out: failed": 1, "left out: canceled": 1, `left out: not fitting: no column for the input "ticket": name one "ticket" or "kind" or "text" or "input"; the row has expected`: 1}
	if diff := cmp.Diff(want, r.Recorded); diff != "" || r.Cases != 3 {
		t.Errorf("%d cases, skipped %s", r.Cases, diff)
	}
}

// TestFork takes the answers of a run that took them from another one itself.
func TestFork(t *testing.T) {
	j := memdb.New(t)
	d := newDesk("Answer.")
	d.record(t, j, 1, nil)
	opts := journal.Options{Labels: map[string]string{"env": "prod"}, Fork: &journal.Fork{Run: "r0000", At: "desk/route"}}
	if _, err := stone.Run(budget.With(t.Context(), budget.New(budget.Limits{})), d.pipeline(), stone.Config{RunID: "fork", Recorder: journal.Keep(j, opts)}); err != nil {
		t.Fatal(err)
	}
	// Both have the same input and result: one case, of the newest run.
	if r := d.evaluate(t, j, nil); d.served.Load() != 0 || r.Recorded["requests"] != 1 || r.Recorded["new"] != 0 || r.Repeated != 1 {
		t.Errorf("asked %d times: %+v", d.served.Load(), r.Recorded)
	}
}
