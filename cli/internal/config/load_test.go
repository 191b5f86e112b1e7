package config_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/acp/harness"
	"github.com/stonelayer/stone/x/cel"
	"github.com/stonelayer/stone/x/mcp"
	"github.com/stonelayer/stone/x/otlp"
	"github.com/stonelayer/stone/x/retrieve/search"
	"github.com/stonelayer/stone/x/solve/sat"
	"github.com/stonelayer/stone/x/solve/uci"
)

// linked has every kind.
var linked = func() (s kinds.Set) {
	for _, k := range []kinds.Kind{cel.Part, mcp.Part, sat.Part, search.Part, uci.Part, harness.Part, otlp.Part.Kind} {
		s.Add(k)
	}
	return s
}()

// load reads a configuration from a directory with other files.
func load(t *testing.T, text string, others ...string) (*config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(others); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, others[i]), []byte(others[i+1]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "stone.edn")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, &linked)
	if err == nil {
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return c, err
}

func mustLoad(t *testing.T, text string, others ...string) *config.Config {
	t.Helper()
	c, err := load(t, text, others...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestExample(t *testing.T) {
	c := mustLoad(t, config.Example)
	if err := errors.Join(c.App.Registry.Err(), c.App.Tools.Err()); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(c.App.Registry.IDs()); got != "[greeter model/large model/small solver/sat text/count]" {
		t.Error(got)
	}
	large, _ := c.App.Registry.Lookup("model/large")
	if large.Cost.Out != 2 {
		t.Errorf("the price list is not used: %+v", large.Cost)
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"kind", `{:capabilities {:a {:cap/kind :llmm}}}`, `1:31: capabilities.a.cap/kind: unknown kind "llmm"; known are a2a, acp, answers, chess, command, go, http, llm, mcp, plan, search, solver; did you mean "llm"?`},
		{"no kind", `{:capabilities {:a {}}}`, `1:20: capabilities.a.cap/kind: the field "cap/kind" is missing`},
		{"other id", `{:capabilities {:a {:cap/kind :solver :solver :sat :cap/id :b}}}`, `1:60: capabilities.a.cap/id: expected "a", under which it is registered, found "b"`},
		{"expression", `{:capabilities {:a {:cap/kind :solver :solver :cel :expression "1 +"}}}`, `1:20: capabilities.a: expression "1 +": 1:4: `},
		{"expression of no schema", `{:capabilities {:a {:cap/kind :solver :solver :cel :io/out-schema :res/text :expression "call.input.n + 'x'"}}}`, `1:20: capabilities.a: expression "call.input.n + 'x'": its value does not fit the schema res/text: want object, the producer writes string`},
		{"expression of no intent", `{:intents {:say {:out-schema :res/eval}} :capabilities {:a {:cap/kind :solver :solver :cel :cap/intents #{:say} :expression "{'score': 'high'}"}}}`, `1:60: capabilities.a: expression "{'score': 'high'}": its value does not fit the schema res/eval: score: want number, the producer writes "high"`},
		{"no protocol", `{:providers {:p {:url "http://h"}} :capabilities {:a {:cap/kind :llm :provider :p :model "m"}}}`, `1:17: providers.p.protocol: the field "protocol" is missing`},
		{"literal key", `{:providers {:openai {:key "sk-1"}}}`, `1:28: providers.openai.key: expected the place of the secret, not the secret itself: `},
		{"both places", `{:providers {:openai {:key {:env "A" :file "b"}}}}`, `1:28: providers.openai.key: expected one of env and file`},
		{"no place", `{:providers {:openai {:key {}}}}`, `1:28: providers.openai.key: expected one of env and file`},
		{"secret header", `{:capabilities {:a {:cap/kind :http :url "http://h" :headers {:Authorization "Bearer sk-1"}}}}`, `1:78: capabilities.a.headers.Authorization: expected the place of the secret, not the secret itself: `},
		{"secret in url", `{:capabilities {:a {:cap/kind :http :url "http://u:sk-1@h"}}}`, `1:42: capabilities.a.url: expected an address without user and query: `},
		{"server", `{:capabilities {:a {:cap/kind :mcp :server :files :tool "t"}}}`, `1:44: capabilities.a.server: unknown server "files"; none is configured: add one`},
		{"two ways", `{:servers {:s {:command ["/bin/x"] :url "http://h"}}}`, `1:15: servers.s: expected one of command and url`},
		{"scope", `{:capabilities {:a {:cap/kind :command :command ["/bin/sh"] :scope {:process ["/bin/ls"]}}}}`, `1:20: capabilities.a: `},
		{"schema", `{:schemas {:a {:type :objekt}}}`, `1:15: schemas.a: expected a JSON Schema: `},
		{"schema file", `{:schemas {:a {:file "there.json"}}}`, `1:15: schemas.a: `},
		{"intent", `{:intents {:a {:in-schema :req/txt}}}`, `1:27: intents.a.in-schema: unknown schema "req/txt"; `},
		{"prompt", `{:capabilities {:a {:cap/kind :llm :provider :openai :model "m" :cap/intents #{:say} :prompts {:intents {:sya "x"}}}}}`, `1:111: capabilities.a.prompts.intents.sya: unknown intent of this capability "sya"; known are say; did you mean "say"?`},
		{"prompt file", `{:capabilities {:a {:cap/kind :llm :provider :openai :model "m" :prompts {:default {:file "p"}}}}}`, `1:84: capabilities.a.prompts.default: `},
		{"setting", `{:capabilities {:a {:cap/kind :llm :provider :openai :model "m" :params {:temperature 3}}}}`, `1:87: capabilities.a.params.temperature: expected a number from 0 to 2, found 3`},
		{"setting of another protocol", `{:capabilities {:a {:cap/kind :llm :provider :anthropic :model "m" :params {:seed 1}}}}`, `1:20: capabilities.a: the protocol has no setting seed: `},
		{"rubric of no judge", `{:policy {:default {:judge {:rubric "Is it kind?"}}}}`, `1:37: policy.default.judge.rubric: the judge is off, so its rubric has no effect: add :on true`},
		{"unknown intent", `{:intents {:say {}} :capabilities {:a {:cap/kind :solver :solver :sat :cap/intents #{:sya}}}}`, `1:84: capabilities.a.cap/intents: unknown intent "sya"; known are say, eval/grade, search/rerank, eval/revise, llm/turn; did you mean "say"?`},
		{"rules of nothing", `{:intents {:say {}} :policy {:intents {:sya {:fallback []}}}}`, `1:45: policy.intents.sya: unknown intent "sya"; known are say, eval/grade, search/rerank, eval/revise, llm/turn; did you mean "say"?`},
		{"check twice", `{:checks {:a {:max-chars 1 :regex "x"}}}`, `1:14: checks.a: expected an expression in a string, or a map with one of `},
		{"regex", `{:checks {:a {:regex "("}}}`, `1:22: checks.a.regex: error parsing regexp: `},
		{"grader", `{:capabilities {:g {:cap/kind :solver :solver :sat :cap/intents #{:sat/solve}}} :checks {:a {:capability :g}}}`, `1:106: checks.a.capability: g does not handle eval/grade, which a check needs: add the intent to its cap/intents`},
		{"reranker", `{:capabilities {:g {:cap/kind :solver :solver :sat :cap/intents #{:sat/solve}} :s {:cap/kind :search :rerank :g}}}`, `1:110: capabilities.s.rerank: g does not answer search/rerank: add it to its cap/intents`},
		{"reranker of the section", `{:search {:rerank :juge} :capabilities {:judge {:cap/kind :solver :solver :sat}}}`, `1:19: search.rerank: unknown capability "juge"; known are judge; did you mean "judge"?`},
		{"index with a password", `{:capabilities {:s {:cap/kind :search :index "postgres://u:hidden@h/n"}}}`, `1:46: capabilities.s.index: expected an address without a password: set STONE_INDEX to the address with it`},
		{"size", `{:search {:size 10}}`, `1:17: search.size: expected an integer from 64 to 65536, found 10`},
		{"overlap", `{:search {:size 1000 :overlap 600}}`, `1:31: search.overlap: expected an integer from 0 to 500, found 600`},
		{"judge", `{:policy {:intents {:a {:judge {:cap/id :nobody}}}}}`, `1:41: policy.intents.a.judge.cap/id: unknown capability "nobody"; none is configured: add one`},
		{"price", `{:models [{:model "m" :usd-per-mtok-in 1 :usd-per-mtok-out 1 :date "May"}]}`, `1:68: models[0].date: expected the day when this was looked up, such as "2026-11-21"`},
		{"half a price", `{:models [{:model "m" :date "2026-11-22" :usd-per-mtok-in 1}]}`, `1:11: models[0].usd-per-mtok-out: the field "usd-per-mtok-out" is missing`},
		{"model twice", `{:models [{:model "m" :date "2026-11-22"} {:model "m" :date "2026-11-21"}]}`, `1:43: models[1]: duplicate row of "m"`},
		{"ability", `{:models [{:model "m" :date "2026-11-22" :can #{:tool}}]}`, `1:47: models[0].can: unknown ability "tool"; known are audio, files, images, schema, thinking, tools, video; did you mean "tools"?`},
		{"limit", `{:providers {:openai {:limits {:requests-per-min 1}}}}`, `1:32: providers.openai.limits.requests-per-min: unknown field requests-per-min; known are concurrency, processes, requests-per-minute, tokens-per-minute; did you mean "requests-per-minute"?`},
		{"live", `{:serve {:live :chat/answer}}`, `1:16: serve.live: `},
		{"live field", `{:serve {:alive #{}}}`, `1:10: serve.alive: unknown field alive; known are ignore-tools, live, url; did you mean "live"?`},
		{"too many processes", `{:providers {:openai {:limits {:concurrency 3 :requests-per-minute 9 :processes 4}}}}`, `1:81: providers.openai.limits.processes: expected at most 3, so that each process has a part of every limit, found 4`},
		{"no limit", `{:providers {:openai {:limits {:concurrency 0}}}}`, `1:45: providers.openai.limits.concurrency: expected an integer from 1 to 2147483647, found 0`},
		{"no silence", `{:providers {:openai {:timeouts {:silence-ms 0}}}}`, `1:46: providers.openai.timeouts.silence-ms: expected at least 1, found 0`},
		{"retries", `{:providers {:openai {:retry {:max 1000}}}}`, `1:36: providers.openai.retry.max: expected an integer from 0 to 100, found 1000`},
		{"no thinking", `{:models [{:model "m" :date "2026-11-22" :can #{:tools}}] :capabilities {:a {:cap/kind :llm :provider :openai :model "m" :params {:effort "low"}}}}`, `1:77: capabilities.a: llm: m cannot answer the request: the request needs the ability thinking, but the model has only tools`},
		{"rubric file", `{:policy {:default {:judge {:rubric {:file "r"}}}}}`, `1:37: policy.default.judge.rubric: `},
		{"rubric", `{:policy {:intents {:a {:judge {:rubric {:path "r"}}}}}}`, `1:41: policy.intents.a.judge.rubric: `},
		{"plan", `{:capabilities {:a {:cap/kind :plan :file "plan.edn"}}}`, `1:43: capabilities.a.file: `},
		{"answers", `{:capabilities {:a {:cap/kind :answers}}}`, `1:20: capabilities.a.file: the field "file" is missing`},
		{"answers of no file", `{:capabilities {:a {:cap/kind :answers :file "there.jsonl"}}}`, `1:20: capabilities.a: open `},
		{"answers at no path", `{:capabilities {:a {:cap/kind :answers :file "there.jsonl" :text []}}}`, `1:66: capabilities.a.text: expected a column, or a vector of nested field names`},
		{"mode", `{:mode :eager}`, `1:8: mode: unknown name "eager"; known are hybrid, strict, lazy`},
		{"text", `{:mode "lazy"}`, `1:8: mode: expected :hybrid, :strict, :lazy, found the string "lazy"`},
		{"broken", "{:mode\n", `2:1: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, c.text)
			invalid, ok := errors.AsType[*config.Invalid](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			lines := strings.Join(invalid.Lines(), "\n")
			got := strings.TrimPrefix(invalid.Lines()[0], invalid.File+":")
			if got != c.want && !(strings.HasSuffix(c.want, ": ") || strings.HasSuffix(c.want, " ")) || !strings.HasPrefix(got, c.want) || len(invalid.Lines()) > 1 {
				t.Errorf("got  %s\nwant %s", lines, c.want)
			}
			if strings.Contains(lines, "sk-1") {
				t.Error("the secret is shown")
			}
		})
	}
}

// act asks for an intent and returns the answer, or the failure.
func act(t *testing.T, c *config.Config, intent, input string) string {
	t.Helper()
	request := fmt.Sprintf(`{"proto":1,"trace":{"id":"t"},"task":{"intent":%q},"input":%s}`, intent, input)
	trace, spec, err := call.ReadRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	resp, _ := c.App.Act(t.Context(), trace, spec, stone.Config{Grant: c.Grant([]string{"process"})})
	if resp.Err != nil {
		return call.AsError(resp.Err).Error()
	}
	return string(resp.Reply.Out)
}

// A key is read when the model is used: from a variable, or from a file that may be
// missing until then.
func TestSecretsAreReadLate(t *testing.T) {
	model := script.New(script.Text("yes"), script.Text("yes"))
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Authorization"))
		model.ServeHTTP(w, r)
	}))
	defer server.Close()
	t.Setenv("OPENAI_API_KEY", "sk-openai")
	t.Setenv("STONE_TEST_KEY", "")
	c := mustLoad(t, fmt.Sprintf(`
		{:providers {:a {:protocol :openai :url %q :key {:env "STONE_TEST_KEY"}}
		             :b {:protocol :openai :url %[1]q}}
		 :capabilities {:ask/a {:cap/kind :llm :provider :a :model "m" :cap/intents #{:a}}
		                :ask/b {:cap/kind :llm :provider :b :model "m" :cap/intents #{:b}}}}`, server.URL))
	if got := act(t, c, "a", `{"prompt":"?"}`); !strings.Contains(got, "the environment variable STONE_TEST_KEY is not set") {
		t.Error(got)
	}
	t.Setenv("STONE_TEST_KEY", "sk-late")
	if got := act(t, c, "a", `{"prompt":"?"}`); got != `{"text":"yes"}` {
		t.Error(got)
	}
	if got := act(t, c, "b", `{"prompt":"?"}`); got != `{"text":"yes"}` {
		t.Error(got)
	}
	if want := []string{"Bearer sk-late", ""}; fmt.Sprint(keys) != fmt.Sprint(want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
	if want := []kinds.Secret{{Env: "STONE_TEST_KEY"}}; fmt.Sprint(c.Secrets) != fmt.Sprint(want) {
		t.Errorf("secrets %v", c.Secrets)
	}
}

// Checks of all kinds pass and fail.
func TestChecks(t *testing.T) {
	c := mustLoad(t, `
		{:schemas {:res/brief {:file "brief.json"}}
		 :capabilities
		 {:echo   {:cap/kind :solver :solver :cel :cap/intents #{:a :b :c :d :e :f} :expression "{'value': call.input.say}"}
		  :grader {:cap/kind :solver :solver :cel :cap/intents #{:eval/grade} :io/out-schema :res/any
		           :expression "call.input.out.value.startsWith('good') ? 1.0 : 0.0"}}
		 :checks {:cel "out.value != 'bad'" :short {:max-chars 20} :word {:regex "good"} :brief {:schema :res/brief}
		          :program {:command ["/bin/sh" "-c" "grep -q good"]}}
		 :policy {:intents {:a {:done {:must #{:cel}}} :b {:done {:must #{:short}}} :c {:done {:must #{:word}}}
		                    :d {:done {:must #{:brief}}} :e {:done {:must #{:program}}}}}}`,
		"brief.json", `{"properties": {"value": {"maxLength": 4}}}`)
	for _, intent := range []string{"a", "b", "c", "d", "e"} {
		if got := act(t, c, intent, `{"say":"good"}`); got != `{"value":"good"}` {
			t.Errorf("%s: %s", intent, got)
		}
		bad := map[string]string{"b": `{"say":"far too long to be good"}`}[intent]
		if bad == "" {
			bad = `{"say":"bad"}`
		}
		if intent == "d" {
			bad = `{"say":"badly"}`
		}
		if got := act(t, c, intent, bad); !strings.HasPrefix(got, reasons.MustFailed+": ") {
			t.Errorf("%s: %s", intent, got)
		}
	}
}

// An expression fills any schema, and is interchangeable with whatever else does: as an answer, as a judge, as a map with a user's
// schema.
func TestExpressions(t *testing.T) {
	c := mustLoad(t, `
		{:schemas {:res/size {:type "object" :required ["size" "words"]
		                      :properties {:size {:type "integer"} :words {:type "array" :items {:type "string"}}}}}
		 :intents {:text/size {:out-schema :res/size} :text/greet {:out-schema :res/text} :cel/eval {}}
		 :capabilities
		 {:size  {:cap/kind :solver :solver :cel :cap/intents #{:text/size} :io/out-schema :res/size
		          :expression "{'size': size(call.input.text), 'words': call.input.text.split(' ')}"}
		  :greet {:cap/kind :solver :solver :cel :cap/intents #{:text/greet} :io/out-schema :res/text
		          :expression "{'text': 'Hello, ' + call.input.name}"}
		  :grade {:cap/kind :solver :solver :cel :cap/intents #{:eval/grade} :io/out-schema :res/eval
		          :expression "call.input.out.text.contains('Ada') ? {'score': 1.0, 'reasons': []} : {'score': 0, 'reasons': ['a stranger']}"}
		  :eval  {:cap/kind :solver :solver :cel :cap/intents #{:cel/eval}}}
		 :policy {:intents {:text/greet {:judge {:on true :w 1} :done {:score-min 0.5}}}}}`)
	for _, test := range []struct{ intent, input, want string }{
		{"text/size", `{"text":"two words"}`, `{"size":9,"words":["two","words"]}`},
		{"text/greet", `{"name":"Ada"}`, `{"text":"Hello, Ada"}`},
		{"text/greet", `{"name":"Bob"}`, reasons.LowScore},
		{"cel/eval", `{"expression":"a + 1","vars":{"a":1}}`, `2`},
	} {
		if got := act(t, c, test.intent, test.input); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s of %s: %s, want %s", test.intent, test.input, got, test.want)
		}
	}
}

// A rubric is in the policy, in a check or in a file.
func TestRubric(t *testing.T) {
	c := mustLoad(t, `
		{:capabilities
		 {:echo   {:cap/kind :solver :solver :cel :cap/intents #{:a :b :c} :expression "{'value': call.input.say}"}
		  :grader {:cap/kind :command :cap/intents #{:eval/grade}
		           :command ["/bin/sh" "-c" "if grep -q '\"rubric\":\"kind'; then echo '{\"score\": 1}'; else echo '{\"score\": 0}'; fi"]}}
		 :checks {:graded {:capability :grader :rubric {:file "rubric.md"}} :harsh {:capability :grader :rubric "harsh"}}
		 :policy {:default {:judge {:on true :w 1 :rubric {:file "rubric.md"}} :done {:score-min 0.5}}
		          :intents {:b {:judge {:rubric "harsh"}} :c {:done {:must #{:harsh}}}}}}`,
		"rubric.md", "kind words")
	for intent, want := range map[string]string{"a": `{"value":"x"}`, "b": reasons.LowScore, "c": reasons.MustFailed + ": harsh: "} {
		if got := act(t, c, intent, `{"say":"x"}`); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", intent, got, want)
		}
	}
	if got := c.App.Policy.Default.Judge.Rubric; got != "kind words" {
		t.Errorf("the rubric is %q", got)
	}
}

// A capability that checks is asked as judges are, on the budget of the run, and no
// policy applies to it.
func TestCapabilityChecks(t *testing.T) {
	c := mustLoad(t, `
		{:capabilities
		 {:echo   {:cap/kind :solver :solver :cel :cap/intents #{:a} :expression "{'value': call.input.say}"}
		  :grader {:cap/kind :command :cap/intents #{:eval/grade}
		           :command ["/bin/sh" "-c" "if grep -q '\"value\":\"good'; then echo '{\"score\": 1}'; else echo '{\"score\": 0.2, \"reasons\": [\"it is bad\"]}'; fi"]}}
		 :checks {:graded {:capability :grader :score-min 0.7}}
		 :policy {:default {:done {:must #{:graded}}}}}`)
	if got := act(t, c, "a", `{"say":"good"}`); got != `{"value":"good"}` {
		t.Error(got)
	}
	if got := act(t, c, "a", `{"say":"bad"}`); got != `eval/must-failed: graded: grader scores 0.2, want at least 0.7: ["it is bad"]` {
		t.Error(got)
	}
}

// The roles of the principal limit the grant.
func TestGrant(t *testing.T) {
	c := mustLoad(t, `
		{:grant #{:process :net/http} :principal {:id "ada" :roles #{:dev}}
		 :roles {:process {:any #{:dev}} :net/http {:any #{:admin}} :fs/write {:forbidden #{:dev}}}}`)
	if got := fmt.Sprint(c.Grant([]string{"fs/write", "fs/read"})); got != "[fs/read process]" {
		t.Error(got)
	}
	if got := mustLoad(t, `{}`).Grant(nil); got == nil || len(got) > 0 {
		t.Errorf("granted %#v: want nothing, which is not nil", got)
	}
}

// A plan file is a capability: a call runs the plan with the call's input.
func TestPlanCapability(t *testing.T) {
	c := mustLoad(t, `
		{:capabilities {:cel {:cap/kind :solver :solver :cel :cap/intents #{:up} :expression "{'value': call.input.text.size()}"}
		                :twice {:cap/kind :plan :file "twice.edn" :cap/intents #{:twice}}}}`,
		"twice.edn", `{:nodes [{:op :call :intent :up :input {:text {:slot/id :text}} :as :n} {:op :emit :input {:n :n}}]}`)
	if got := act(t, c, "twice", `{"text":"abc"}`); got != `{"n":{"value":3}}` {
		t.Error(got)
	}
}

func TestProbe(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	t.Setenv("STONE_TEST_KEY", "x")
	c := mustLoad(t, fmt.Sprintf(`
		{:capabilities {:up {:cap/kind :http :url %q :headers {:X-Key {:env "STONE_TEST_KEY"}}}
		                :down {:cap/kind :http :url "http://127.0.0.1:1"}
		                :program {:cap/kind :command :command ["/bin/sh"]}
		                :none {:cap/kind :chess :command ["./engine"]}
		                :secret {:cap/kind :http :url %[1]q :headers {:X-Key {:file "key"}}}}}`, server.URL))
	for _, r := range c.Capabilities {
		err := r.Probe(context.Background())
		if up := r.ID == "up" || r.ID == "program"; up != (err == nil) {
			t.Errorf("%s: %v", r.ID, err)
		}
	}
}
