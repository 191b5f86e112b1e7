package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
)

func TestAct(t *testing.T) {
	w := &world{}
	app := app(w.cap(says("cover the beds"), call.Metadata{ID: "bot/fern", Effects: []string{"net/http"}}))
	app.Checks = map[string]call.Check{"no": holds()}
	for _, tc := range []struct {
		name, task, more string
		grant            []string
		want             string
		calls            int
	}{
		{name: "an answer", want: `"result":{"out":{"text":"cover the beds"},"type":"value","usage":{"attempts":1,"cap/id":"bot/fern"`, calls: 1},
		{name: "a failed must", more: `,"done":{"must":["no"]}`, want: `"error":{"details":{"attempts":1,"must-failed":["no"],"score":1},"message":"no: it does not hold","type":"eval/must-failed"},"proto":1,"trace":{"id":"g-1","turn":2},"usage":{"attempts":1,"cap/id":"bot/fern"`, calls: 1},
		{name: "a failure is not allowed here", task: `,"dispatch":{"allow-failure?":true}`, more: `,"done":{"must":["no"]}`, want: `"type":"eval/must-failed"`, calls: 1},
		{name: "an effect that is not granted", more: `,"effects":{"allowed":["net/http"]}`,
			want: `"reason":"effect-not-granted"},"message"`},
		{name: "one that is", more: `,"effects":{"allowed":["net/http"]}`, grant: []string{"net/http"}, want: `"cover the beds"`, calls: 1},
		{name: "nobody", task: `,"requires":{"cap/kind":"solver"}`, want: `"reason":"no-candidate"`},
		{name: "an unknown check", more: `,"done":{"must":["x/y"]}`, want: `"reason":"unknown-check"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w.calls = nil
			trace, spec, err := call.ReadRequest([]byte(`{"proto":1,"trace":{"id":"g-1","turn":2},"task":{"intent":"garden/advise"` + tc.task + `},"input":{"prompt":"frost?"}` + tc.more + `}`))
			if err != nil {
				t.Fatal(err)
			}
			response, _ := app.Act(t.Context(), trace, spec, stone.Config{Grant: tc.grant})
			text, err := json.Marshal(response)
			if err != nil || !strings.Contains(string(text), tc.want) || !strings.Contains(string(text), `"trace":{"id":"g-1","turn":2}`) || len(w.calls) != tc.calls {
				t.Errorf("got %s, %v after %v; want %s", text, err, w.calls, tc.want)
			}
		})
	}
}

var (
	number = dag.NewType[int]("number")
	square = dag.NewType[int]("square")
)

func TestFunc(t *testing.T) {
	double := call.Func(call.Metadata{ID: "math/double"}, func(_ context.Context, n int) (int, error) {
		if n < 0 {
			return 0, errors.New("no")
		}
		return 2 * n, nil
	})
	for in, want := range map[string]string{"21": "42", "-1": "!runtime/invoke-failed", `"x"`: "!input/schema-invalid"} {
		v := runCall(t.Context(), call.Spec{Applicator: app(double), Input: dag.Derive(dag.Nothing, func(struct{}) any { return call.JSON(in) })}, call.Budget{}, stone.Config{})
		if v.brief() != want {
			t.Errorf("%s: got %s, want %s", in, v.brief(), want)
		}
	}
	if err := call.NewRegistry(call.Func[int, int](call.Metadata{ID: "x/y"}, nil), call.Pipeline(call.Metadata{ID: "x/z"}, stone.Ashlar{}, nil, nil)).Err(); err == nil {
		t.Error("capabilities that do nothing are taken")
	}
}

func TestPipeline(t *testing.T) {
	w := &world{}
	inner := app(w.cap(fails("post/strike"), call.Metadata{ID: "a"}))
	for name, tc := range map[string]struct {
		p     stone.Ashlar
		in    string
		want  string
		trips int
	}{
		"its answer": {stone.Func("square", number, square, func(_ context.Context, n int) (int, error) { return n * n, nil }), "7", "49", 1},
		"its input":  {stone.Func("square", number, square, func(_ context.Context, n int) (int, error) { return n * n, nil }), "7.5", "!input/schema-invalid", 1},
		"its failure": {stone.Func("square", number, square, func(context.Context, int) (int, error) {
			return 0, stone.Fail("math/odd", "it is odd")
		}), "7", "!math/odd", 1},
		"a call in it": {call.New("in", square, call.Spec{Applicator: inner, Intent: "x/y"}), "7", "!post/strike", 2},
		"no answer":    {stone.Func("other", number, number, func(_ context.Context, n int) (int, error) { return n, nil }), "7", "!runtime/invoke-failed", 1},
		"effects":      {stone.Func0("square", square, func(context.Context) (int, error) { return 1, nil }, stone.Effects("fs/write")), "7", "!effect-not-granted", 0},
	} {
		t.Run(name, func(t *testing.T) {
			account := budget.New(call.Budget{})
			grant := []string{"net"}
			v := runCall(budget.With(t.Context(), account), call.Spec{
				Applicator: app(call.Pipeline(call.Metadata{ID: "math/square"}, tc.p, number, square)),
				Input:      dag.Derive(dag.Nothing, func(struct{}) any { return call.JSON(tc.in) }),
			}, call.Budget{}, stone.Config{Grant: grant})
			if v.brief() != tc.want || account.Spent().Roundtrips != tc.trips {
				t.Errorf("got %s after %d round trips, want %s after %d (%v)", v.brief(), account.Spent().Roundtrips, tc.want, tc.trips, v.err)
			}
		})
	}
}

func TestCandidates(t *testing.T) {
	w := &world{}
	app := app(w.cap(nil, call.Metadata{ID: "a", Cost: call.Cost{USD: 2}}), w.cap(nil, call.Metadata{ID: "b"}), w.cap(nil, call.Metadata{ID: "c"}), w.cap(nil, call.Metadata{ID: "d"}))
	app.Registry.SetDown("b", true)
	asked, rejected := app.Candidates(call.Spec{Intent: "x/y", Dispatch: retry(0, 0, caps("a", "b", "none", "c", "d"))}, call.Budget{USD: new(1.0)}, nil)
	if got := fmt.Sprint(asked, rejected); got != "[c] [{a budget/cost} {b availability/down} {none cap/not-found}]" {
		t.Error(got)
	}
}
