package hostile

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/plan"
)

// A plan that does not say which effects it has gets none that its run does not grant.
// A capability that starts a program or reaches a server is refused before it does so, on
// every way to it.
func TestUnstatedEffects(t *testing.T) {
	const (
		touch = `"/bin/sh" "-c" "touch DIR/touched; echo 1"`
		grade = `:must #{:c}}} {:op :emit :input 1}]}`
	)
	attacks := []struct {
		name, config, plan string
		grant              string // with which it is no attack
	}{
		{"a tool that is a program",
			`{:tools {:x/t {:cap/kind :command :command [` + touch + `]}}}`,
			`{:nodes [{:op :tool :tool/id :x/t :as :a} {:op :emit :input {:slot/id :a}}]}`, "process"},
		{"a capability that is a program",
			`{:capabilities {:x/c {:cap/kind :command :cap/intents #{:x/y} :command [` + touch + `]}}}`,
			`{:nodes [{:op :call :intent :x/y :as :a} {:op :emit :input {:slot/id :a}}]}`, "process"},
		{"a program that may be given other effects",
			`{:capabilities {:x/c {:cap/kind :command :cap/effects-allowed #{:none} :command [` + touch + `]}}}`,
			`{:nodes [{:op :call :intent :x/y :cap/id :x/c :as :a} {:op :emit :input {:slot/id :a}}]}`, "process"},
		{"a server",
			`{:capabilities {:x/c {:cap/kind :http :cap/intents #{:x/y} :url "URL"}}}`,
			`{:nodes [{:op :call :intent :x/y :as :a} {:op :emit :input {:slot/id :a}}]}`, "net"},
		{"a tool of an MCP server that is a program",
			`{:servers {:s {:command ["/bin/sh" "-c" "touch DIR/touched"] :sandbox {:unconfined true} :start-timeout-ms 2000}}
			  :tools {:x/t {:cap/kind :mcp :server :s :tool "t"}}}`,
			`{:nodes [{:op :tool :tool/id :x/t :as :a} {:op :emit :input {:slot/id :a}}]}`, "process"},
		{"a tool of an MCP server over HTTP",
			`{:servers {:s {:url "URL" :start-timeout-ms 2000}} :tools {:x/t {:cap/kind :mcp :server :s :tool "t"}}}`,
			`{:nodes [{:op :tool :tool/id :x/t :as :a} {:op :emit :input {:slot/id :a}}]}`, "net"},
		{"an engine",
			`{:capabilities {:x/c {:cap/kind :chess :command [` + touch + `]}}}`,
			`{:nodes [{:op :call :intent :chess/best-move :input {:fen "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"} :as :a} {:op :emit :input {:slot/id :a}}]}`, "process"},
		{"a judge that is a program",
			`{:capabilities {:x/e {:cap/kind :solver :solver :cel :cap/intents #{:x/y} :expression "1"}
			                 :x/j {:cap/kind :command :cap/intents #{:eval/grade} :command [` + touch + `]}}
			  :policy {:default {:judge {:on true}}}}`,
			`{:nodes [{:op :call :intent :x/y :as :a} {:op :emit :input {:slot/id :a}}]}`, "process"},
		{"a program that repairs",
			`{:capabilities {:x/e {:cap/kind :solver :solver :cel :cap/intents #{:x/y} :expression "1"}
			                 :x/r {:cap/kind :command :cap/intents #{:x/y} :command [` + touch + `]}} :checks {:no "false"}}`,
			`{:nodes [{:op :call :cap/id :x/e :intent :x/y :as :a :done {:must #{:no}} :dispatch {:repair {:cap/id :x/r}}}
			          {:op :emit :input {:slot/id :a}}]}`, "process"},
		{"a check that is a program",
			`{:capabilities {:x/e {:cap/kind :solver :solver :cel :cap/intents #{:x/y} :expression "1"}} :checks {:c {:command [` + touch + `]}}}`,
			`{:nodes [{:op :call :intent :x/y :as :a :done {` + grade, "process"},
		{"a check that is a capability that is a program",
			`{:capabilities {:x/e {:cap/kind :solver :solver :cel :cap/intents #{:x/y} :expression "1"}
			                 :x/j {:cap/kind :command :cap/intents #{:eval/grade} :command [` + touch + `]}}
			  :checks {:c {:capability :x/j}}}`,
			`{:nodes [{:op :call :intent :x/y :as :a :done {` + grade, "process"},
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			s := newServer(t, http.NotFoundHandler())
			dir := t.TempDir()
			p := newProject(t, map[string]string{"c.edn": strings.NewReplacer("URL", s.URL, "DIR", dir).Replace(a.config), "p.edn": a.plan})
			touched := func() bool {
				_, err := os.Lstat(filepath.Join(dir, "touched"))
				return err == nil
			}
			r := p.stone("run", "--no-db", "--config", "c.edn", "p.edn")
			if touched() || s.requests.Load() != 0 || r.code == 0 {
				t.Errorf("ran: %+v, %d requests", r, s.requests.Load())
			}
			if !strings.Contains(r.stderr, a.grant) || !strings.Contains(r.stderr, "effect") {
				t.Errorf("the refusal names no effect: %s", r.stderr)
			}
			// With the grant, the user has allowed it.
			r = p.stone("run", "--no-db", "--config", "c.edn", "--grant", a.grant, "p.edn")
			if !touched() && s.requests.Load() == 0 {
				t.Errorf("granted, it does not run: %+v", r)
			}
		})
	}
}

// A plan that a model wrote has the effects of the call that asked for it, whether or
// not it says so.
func TestUnstatedEffectsOfAnswers(t *testing.T) {
	for _, stated := range []string{``, `,"effects":{"allowed":["process"]}`, `,"effects":{"allowed":["none"]}`} {
		answer := fmt.Sprintf(`{"nodes":[{"op":"tool","tool/id":"x/t","input":{}%s,"as":"w"},{"op":"emit","input":{"slot/id":"w"}}]}`, stated)
		s := newServer(t, says(answer))
		config := `{:providers {:p {:protocol :openai :url "` + s.URL + `"}}
			:capabilities {:m {:cap/kind :llm :provider :p :model "m" :cap/intents #{:x/plan} :cap/can-produce #{:plan}}}
			:tools {:x/t {:cap/kind :command :command ["/bin/sh" "-c" "touch touched; echo 1"]}}
			:grant #{:process}}`
		p := newProject(t, map[string]string{"c.edn": config, "p.edn": `{:nodes [
			{:op :call :intent :x/plan :input {:prompt "go"} :requires {:reply :plan} :effects {:allowed #{:none}} :as :a}
			{:op :emit :input {:slot/id :a}}]}`})
		r := p.stone("run", "--no-db", "--config", "c.edn", "p.edn")
		if p.touched("touched") || r.code == 0 || s.requests.Load() != 2 { // the model is told once what is wrong
			t.Errorf("stated %q: %+v, %d requests", stated, r, s.requests.Load())
		}
	}
}

// says answers every request to a model with a text.
func says(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", text)
	})
}

// A plan that a capability returned reads the input of its call, and no other node of the
// pipeline around it.
func TestAnswersReadWhatWasPassedOn(t *testing.T) {
	secret, passed := dag.NewType[string]("customer"), dag.NewType[string]("question")
	for _, template := range []string{`{:slot/id :customer}`, `{:slot/id [:customer]}`, `{:slot/record :customer}`, `":customer"`, `:customer`} {
		for _, where := range []string{`{:op :emit :input {:x %s}}`, `{:op :let :value %s :as :l} {:op :emit :input {:x {:slot/id :l}}}`, `{:op :call :cap/id :out :intent :a/b :input {:x %s}} {:op :emit :input 1}`} {
			var sent atomic.Value
			sent.Store("")
			spy := call.Func(call.Metadata{ID: "out", CanProduce: []string{call.Value}}, func(_ context.Context, in map[string]any) (string, error) {
				sent.Store(fmt.Sprint(in))
				return "", nil
			})
			plans := call.Capability{Metadata: call.Metadata{ID: "planner", CanProduce: []string{call.Plan}}, Invoke: func(context.Context, *call.Request) (*call.Reply, error) {
				return &call.Reply{Type: call.Plan, Plan: []byte(`{:nodes [` + fmt.Sprintf(where, template) + `]}`)}, nil
			}}
			app := &call.Applicator{Registry: call.NewRegistry(spy, plans), Plans: plan.Planner(plan.Options{})}
			p := stone.Seq("p",
				stone.Func0("customer", secret, func(context.Context) (string, error) { return "Ada-4711", nil }),
				stone.Func0("question", passed, func(context.Context) (string, error) { return "why", nil }),
				call.New("ask", dag.NewType[any]("answer"), call.Spec{Applicator: app, Cap: "planner", Intent: "a/b", Input: call.From(passed)}))
			r, err := stone.Run(t.Context(), p, stone.Config{})
			if n, none := r.DAG.Nearest("answer"); none == nil && strings.Contains(n.JSON(), "Ada") || strings.Contains(sent.Load().(string), "Ada") {
				t.Errorf("%s in %s read the customer (%v)", template, where, err)
			}
			if strings.Contains(template, "slot/id") && err == nil {
				t.Errorf("%s in %s was not refused", template, where)
			}
		}
	}
}

// The input of the call can be read, and a question needs the effect ask.
func TestAnswersAsk(t *testing.T) {
	for _, c := range []struct {
		grant, stated []string
		asked         bool
	}{{nil, nil, false}, {[]string{"ask"}, nil, false}, {[]string{"ask"}, []string{"ask"}, true}, {[]string{}, []string{"ask"}, false}} {
		questions := 0
		person := asker(func() string { questions++; return "hunter2" })
		plans := call.Capability{Metadata: call.Metadata{ID: "planner", CanProduce: []string{call.Plan}, Effects: []string{"ask"}}, Invoke: func(context.Context, *call.Request) (*call.Reply, error) {
			return &call.Reply{Type: call.Plan, Plan: []byte(`{:nodes [{:op :ask :question "Your password?" :as :w} {:op :emit :input {:slot/id :w}}]}`)}, nil
		}}
		app := &call.Applicator{Registry: call.NewRegistry(plans), Plans: plan.Planner(plan.Options{})}
		_, err := stone.Run(t.Context(), call.New("ask", dag.NewType[any]("answer"), call.Spec{Applicator: app, Cap: "planner", Intent: "a/b", Effects: c.stated}),
			stone.Config{Grant: c.grant, Frontend: person})
		if c.asked != (questions == 1) || c.asked != (err == nil) {
			t.Errorf("%+v: %d questions, %v", c, questions, err)
		}
	}
}

type asker func() string

func (a asker) Ask(context.Context, ask.Question) (ask.Answer, error) {
	return ask.Answer{Response: a()}, nil
}
