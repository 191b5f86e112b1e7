package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/plan"
)

const (
	goodPlan = `{"nodes":[{"op":"call","intent":"letter/summarise","input":{"text":{"slot/id":"letter"}},"as":"summary"},{"op":"emit","input":{"summary":{"slot/id":["summary","text"]}}}]}`
	badPlan  = `{"nodes":[{"op":"cal","intent":"letter/summarise","input":{"text":{"slot/id":"leter"}},"as":"summary"},{"op":"return","input":{"summary":{"slot/id":"summary"}}}]}`
)

// faultsOfBad are in badPlan. All must be told, wherever one is.
var faultsOfBad = []string{`unknown op "cal"`, `unknown op "return"`}

// TestWhatAModelIsTold holds the text of a request for a plan, and its length.
func TestWhatAModelIsTold(t *testing.T) {
	m := script.New(script.Text(goodPlan))
	app := desk(t, m)
	for i := range 5 { // ten intents in all
		name := fmt.Sprintf("desk/extra-%d", i)
		app.Intents[name] = call.Intent{Description: "Does one more thing for the desk.", In: "letter/reply/in", Out: "letter/reply/out"}
	}
	app.Intents["never/possible"] = call.Intent{}
	extra := call.Capability{Metadata: call.Metadata{ID: "desk/extra", Kind: "go", Needs: []string{}}}
	for i := range 5 {
		extra.Intents = append(extra.Intents, fmt.Sprintf("desk/extra-%d", i))
	}
	denied := call.Capability{Metadata: call.Metadata{ID: "shell", Kind: "go", Needs: []string{"process"}, Intents: []string{"never/possible"}}}
	app.Registry = deskRegistry(app, extra, denied)
	if _, err := write(t, app, `:budget {:max-roundtrips 5 :max-tokens 50000}`); err != nil {
		t.Fatal(err)
	}
	told := m.Requests()[0].System
	if n := len(told) / 4; n > 1200 {
		t.Errorf("the text has about %d tokens, want at most 1,200:\n%s", n, told)
	}
	for _, want := range []string{
		`{"op":"map"`, `{"slot/text":`, `{"cel":`, "- letter: string", `- customer: {"name":string, "vip":boolean}`,
		`- ticket/open: Opens a ticket. {"severity":integer (from 1 to 5), "title":string} → {"id":string}`, `"tone"?:one of ["warm","formal"]`,
		"Effects that the plan may have: net/smtp", "Budget left: ", "5 calls, 50000 tokens", `{"help":true}`,
	} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not told:\n%s", want, told)
		}
	}
	if strings.Contains(told, "never/possible") {
		t.Errorf("an intent is told that needs an effect that is not granted:\n%s", told)
	}
	t.Logf("about %d tokens", len(told)/4)
}

// Findings go back to the model however it is asked again, and all of them are kept.
func TestFindingsGoBack(t *testing.T) {
	for name, c := range map[string]struct {
		fields  string
		answers []string
		asked   int
		told    int // the request whose last message has the findings
	}{
		"by itself":               {``, []string{badPlan, goodPlan}, 2, 1},
		"repair":                  {`:dispatch {:repair {:max 1}}`, []string{badPlan, badPlan, goodPlan}, 3, 2},
		"repair, twice by itself": {`:dispatch {:repair {:max 1}}`, []string{badPlan, badPlan, badPlan, goodPlan}, 4, 3},
		"retry":                   {`:dispatch {:retry {:same-cap-max 1} :switch-on #{:plan/invalid}}`, []string{badPlan, badPlan, goodPlan}, 3, 2},
		"within one round trip":   {`:budget {:max-roundtrips 2}`, []string{badPlan, goodPlan}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var answers []script.Answer
			for _, a := range c.answers {
				answers = append(answers, script.Text(a))
			}
			m := script.New(answers...)
			result, err := write(t, desk(t, m), c.fields)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := plan.Emission.From(result.DAG); err != nil || string(out) != `{"summary":"It is broken."}` {
				t.Errorf("the result is %s, %v", out, err)
			}
			requests := m.Requests()
			if len(requests) != c.asked {
				t.Fatalf("the model was asked %d times, want %d", len(requests), c.asked)
			}
			messages := requests[c.told].Messages
			last, before := messages[len(messages)-1].Text(), messages[len(messages)-2].Text()
			for _, want := range faultsOfBad {
				if !strings.Contains(last, want) {
					t.Errorf("%q is not told: %s", want, last)
				}
			}
			if before != badPlan {
				t.Errorf("the model sees %q as its answer", before)
			}
			if strings.Contains(messages[0].Text(), `"repair"`) {
				t.Errorf("the findings are told twice: %s", messages[0].Text())
			}
			n, err := result.DAG.Nearest("out")
			if err != nil {
				t.Fatal(err)
			}
			if kept := call.RecordOf(n).Tried[0].Findings; len(kept) < len(faultsOfBad) {
				t.Errorf("the record keeps %v", kept)
			}
		})
	}
}

// A call that fails for its plan keeps all findings, in the failure, its record and the envelope.
func TestFindingsAreKept(t *testing.T) {
	m := script.New(script.Text(badPlan), script.Text(badPlan))
	_, err := write(t, desk(t, m), "")
	failure, ok := errors.AsType[*call.Error](err)
	if !ok || failure.Type != reasons.PlanInvalid {
		t.Fatalf("the error is %v", err)
	}
	envelope, _ := json.Marshal(call.Response{Err: err})
	record := call.RecordIn(failure.FailureMeta())
	replayed, _ := json.Marshal(call.Response{Err: &call.Error{Type: failure.Type, Record: record}})
	for _, want := range faultsOfBad {
		quoted, _ := json.Marshal(want)
		for where, text := range map[string]string{"error": err.Error(), "record": fmt.Sprint(record.Tried[0].Findings)} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in the %s: %s", want, where, text)
			}
		}
		for where, text := range map[string]string{"envelope": string(envelope), "envelope of a record": string(replayed)} {
			if !strings.Contains(text, strings.Trim(string(quoted), `"`)) {
				t.Errorf("%q is not in the %s: %s", want, where, text)
			}
		}
	}
}

// A resumed run does not replay a plan that could not run: it asks again.
func TestResumeAsksForAnotherPlan(t *testing.T) {
	memory := memdb.New(t)
	m := script.New(script.Text(badPlan), script.Text(badPlan), script.Text(goodPlan))
	app := desk(t, m)
	input, err := plan.Bind(dag.DAG{}, map[string]any{"letters": []string{}, "letter": "x", "limit": 3, "customer": map[string]any{"name": "Ada", "vip": true}})
	if err != nil {
		t.Fatal(err)
	}
	run := func() error {
		a, err := read(t, strings.Replace(task, "%s", "", 1)).Ashlar(app, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = stone.Run(t.Context(), a, stone.Config{RunID: "monday", Input: input, Grant: []string{"net/smtp"}, Recorder: journal.Keep(memory, journal.Options{})})
		return err
	}
	if err := run(); err == nil || len(m.Requests()) != 2 {
		t.Fatalf("asked %d times: %v", len(m.Requests()), err)
	}
	if err := run(); err != nil || len(m.Requests()) != 3 {
		t.Errorf("resumed: asked %d times, want 3: %v", len(m.Requests()), err)
	}
	if err := run(); err != nil || len(m.Requests()) != 3 {
		t.Errorf("resumed when it was done: asked %d times, want 3: %v", len(m.Requests()), err)
	}
}

// The check plan-valid gates a plan that is a value.
func TestPlanValid(t *testing.T) {
	for text, want := range map[string]string{
		goodPlan: "", `{"text":` + quote(goodPlan) + `}`: "", quote(goodPlan): "",
		badPlan:     `unknown op "cal"`,
		`"no plan"`: "plan-valid: ",
		`{"nodes":[{"op":"call","intent":"x/y","as":"z"},{"op":"emit","input":1}]}`:                                                     "no-candidate",
		`{"inputs":{},"nodes":[{"op":"emit","input":{"a":{"slot/id":"letter"}}}]}`:                                                      "missing-producer",
		`{"nodes":[{"op":"call","intent":"letter/summarise","input":{"text":5},"as":"s"},{"op":"emit","input":{"s":{"slot/id":"s"}}}]}`: "schema-mismatch",
	} {
		app := desk(t, script.New(script.Text(text)))
		app.Intents["task/draft"] = call.Intent{}
		app.Registry = deskRegistry(app, call.Capability{Metadata: call.Metadata{ID: "drafter", Kind: "go", Intents: []string{"task/draft"}, Needs: []string{}}, Invoke: func(_ context.Context, _ *call.Request) (*call.Reply, error) {
			return &call.Reply{Out: call.JSON(text)}, nil
		}})
		a := compile(t, app, `{:nodes [{:op :call :intent :task/draft :as :program :done {:must #{:plan-valid}}} {:op :emit :input :program}]}`, plan.Options{})
		_, err := stone.Run(t.Context(), a, stone.Config{Grant: []string{}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func quote(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// A tournament reserves what its candidates are told, too.
func TestReservedWithTheGuide(t *testing.T) {
	app := desk(t, script.New())
	var mu sync.Mutex
	quoted, asked := 0, 0
	for _, id := range []string{"writer/a", "writer/b"} {
		desks[app] = append(desks[app], call.Capability{
			Metadata: call.Metadata{ID: id, Kind: "go", Intents: []string{"task/plan"}, CanProduce: []string{call.Plan}, Needs: []string{}, Effects: []string{"net"}},
			Quote: func(_ context.Context, req *call.Request) budget.Quote {
				mu.Lock()
				defer mu.Unlock()
				if req.Guide == nil || req.Cap != id {
					t.Errorf("%s is quoted without the guide, for %q", id, req.Cap)
				}
				quoted++
				return budget.Fixed(budget.Amount{Roundtrips: 1})
			},
			Invoke: func(_ context.Context, req *call.Request) (*call.Reply, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				return &call.Reply{Type: call.Plan, Plan: []byte(goodPlan)}, nil
			},
		})
	}
	app.Registry = deskRegistry(app)
	if _, err := write(t, app, `:dispatch {:candidates [:writer/a :writer/b] :strategy :tournament}`); err != nil || quoted < 2 || asked != 2 {
		t.Errorf("quoted %d times, asked %d times: %v", quoted, asked, err)
	}
}
