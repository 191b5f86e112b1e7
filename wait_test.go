package stone_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/kind"
)

var (
	reply = dag.NewType[stone.Answer]("answer")
	form  = dag.NewType[formDoc]("form")
)

type formDoc struct {
	Name string `json:"name"`
	Age  int    `json:"age"`
}

// frontend answers questions with a function.
type frontend func(context.Context, ask.Question) (string, error)

func (f frontend) Ask(ctx context.Context, q ask.Question) (ask.Answer, error) {
	response, err := f(ctx, q)
	return ask.Answer{Response: response, By: "ada"}, err
}

// canned gives one answer after the other.
func canned(answers ...string) frontend {
	var mu sync.Mutex
	return func(_ context.Context, q ask.Question) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(answers) == 0 {
			return "", fmt.Errorf("no answer left for %+v", q)
		}
		a := answers[0]
		answers = answers[1:]
		return a, nil
	}
}

func text(s string) func(struct{}) string {
	return func(struct{}) string { return s }
}

func TestAsk(t *testing.T) {
	free := stone.Ask("free", dag.Nothing, reply, text("Well?"))
	choice := stone.Ask("choice", dag.Nothing, reply, text("Ship it?"), stone.Choices("yes", "no"))
	filled := stone.Ask("filled", dag.Nothing, form, text("Who?"))
	tests := []struct {
		name     string
		p        stone.Ashlar
		frontend ask.Frontend
		want     string    // content of the node
		kind     kind.Kind // of the failure
	}{
		{"free text", free, canned("so so"), `{"response":"so so"}`, ""},
		{"cancelled", free, canned(""), `{"response":""}`, ""},
		{"choice", choice, canned("no"), `{"response":"no"}`, ""},
		{"choice, at last", choice, canned("maybe", "Yes", "yes"), `{"response":"yes"}`, ""},
		{"choice, cancelled", choice, canned("maybe", ""), "", kind.Declined},
		{"choice, may be cancelled", stone.Ask("choice", dag.Nothing, reply, text("Ship it?"), stone.Choices("yes", "no", "")), canned("maybe", ""), `{"response":""}`, ""},
		{"choice, never", choice, canned(strings.Split(strings.Repeat("maybe,", 10), ",")...), "", kind.Unanswered},
		{"form", filled, canned(`{"name":"Zoë","age":7}`), `{"age":7,"name":"Zoë"}`, ""},
		{"form, at last", filled, canned(`nonsense`, `{"name":"Zoë"}`, `{"name":"Zoë","age":"7"}`, `{"name":"Zoë","age":7}`), `{"age":7,"name":"Zoë"}`, ""},
		{"form, cancelled", filled, canned(""), "", kind.Declined},
		{"no frontend", free, nil, "", kind.NoFrontend},
		{"frontend fails", free, canned(), "", kind.Error},
		{"frontend panics", free, frontend(func(context.Context, ask.Question) (string, error) { panic("no") }), "", kind.Panic},
		{"text fails", stone.Ask("free", dag.ReaderFunc(func(dag.DAG) (string, error) { return "", stone.Fail("own", "no") }), reply, func(s string) string { return s }), canned("x"), "", "own"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result, err := stone.Run(t.Context(), tt.p, stone.Config{Frontend: tt.frontend})
			if tt.kind != "" {
				wantKind(t, err, tt.kind)
			} else if err != nil || result.Node.JSON() != tt.want {
				t.Errorf("%v, %v; want %s", result.Node.JSON(), err, tt.want)
			}
		})
	}
}

func TestQuestionContents(t *testing.T) {
	var got []ask.Question
	f := frontend(func(_ context.Context, q ask.Question) (string, error) {
		got = append(got, q)
		return []string{"b", "a"}[len(got)-1], nil
	})
	p := stone.Seq("s", say("a", "x"), stone.Ask("ask", word, reply, func(w string) string { return "About " + w + "?" }, stone.Choices("a", "c")))
	if _, err := stone.Run(t.Context(), p, stone.Config{Frontend: f, RunID: "r1"}); err != nil {
		t.Fatal(err)
	}
	first := ask.Question{Name: "ask", RunID: "r1", Path: "s/ask", Text: "About x?", Choices: []string{"a", "c"}}
	second := first
	second.Problem = `"b" is not an answer: want one of: a, c`
	if diff := cmp.Diff([]ask.Question{first, second}, got); diff != "" {
		t.Error(diff)
	}
	listed := tree.Questions(stone.Seq("s", p, stone.Ask("more", dag.Nothing, form, text("?")), p))
	if len(listed) != 2 || listed[0].Name != "ask" || listed[0].Text != "" || listed[1].Schema == nil {
		t.Errorf("Questions = %+v, want both, each once, the second with a schema", listed)
	}
}

// A frontend passes questions on and does not wait: the other steps finish, the run
// fails, and continues when it is run again.
func TestWaiting(t *testing.T) {
	memory := memdb.New(t)
	known, asked := map[string]string{}, map[string]int{}
	f := frontend(func(_ context.Context, q ask.Question) (string, error) {
		if a, ok := known[q.Name]; ok {
			return a, nil
		}
		asked[q.Name]++
		return "", fmt.Errorf("mailed: %w", kind.Waiting)
	})
	p := stone.Rescue("r", stone.Seq("s", stone.Parallel("p", stone.Ask("first", dag.Nothing, reply, text("Well?"), stone.Retry{Attempts: 3}),
		stone.Ask("second", dag.Nothing, reply, text("And?")), say("other", "y"), stone.Lanes(1)), last), stone.Func0("heal", word, func(context.Context) (string, error) {
		t.Error("a question that waits was rescued")
		return "", nil
	}))
	cfg := stone.Config{RunID: "r", Recorder: memory, Frontend: f}
	for i, tt := range []struct {
		known         string
		waits         bool
		first, second int // how often they were asked so far
	}{{"", true, 1, 1}, {"first", true, 1, 2}, {"", true, 1, 3}, {"second", false, 1, 3}, {"", false, 1, 3}} {
		known[tt.known] = "yes"
		result, err := stone.Run(t.Context(), p, cfg)
		if tt.waits {
			if wantKind(t, err, kind.Waiting); !errors.Is(err, kind.Waiting) {
				t.Errorf("run %d: %v", i, err)
			}
		} else if err != nil {
			t.Errorf("run %d: %v", i, err)
		}
		if _, err := result.DAG.All("word"); err != nil || asked["first"] != tt.first || asked["second"] != tt.second {
			t.Errorf("run %d: asked %v, %v; want %d and %d times", i, asked, err, tt.first, tt.second)
		}
		clear(known) // what was answered is recorded
	}
}
