package hostile

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A plan that does not say which effects it has gets none that its run does not grant.
// What starts a program or reaches a server is refused before it does, whichever way
// leads to it.
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
			// With the grant it is what its user wants.
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
		if p.touched("touched") || r.code == 0 || s.requests.Load() != 1 {
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
