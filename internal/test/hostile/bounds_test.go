package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/tool"
)

// A tool server's schema of 75 bytes and a result of 400: before the verdicts of a walk were
// kept, 22 levels took 8 GB and ended the process.
func TestSchemaThatDoubles(t *testing.T) {
	s, err := schema.Parse([]byte(`{"properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}},"required":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	const depth = 60
	err = s.Validate(t.Context(), []byte(strings.Repeat(`{"a":`, depth)+"{}"+strings.Repeat("}", depth)))
	invalid, ok := errors.AsType[*schema.ValidationError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	if n := len(invalid.Detail()); n > 100_000 {
		t.Errorf("%d bytes of errors", n)
	}
}

// plans that grew without a bound: nine doublings of ten bytes took all memory of the
// machine, and the loop and the maps continued after --max-time.
var growing = map[string]struct{ plan, want string }{
	"doubling": {doubling(9), "limit/node-bytes"},
	"loop":     {`{:nodes [{:op :let :value {:n 1} :as :s} {:op :loop :max 2147483647 :until "s.n == 2" :body [{:op :let :value "xx" :as :x}]}]}`, "limit/visits"},
	"maps": {`{:nodes [{:op :let :value [` + strings.Repeat("1 ", 1000) + `] :as :l} {:op :map :over {:slot/id :l} :as :a :body
		[{:op :map :over {:slot/id :l} :as :b :body [{:op :let :value 1 :as :c}]} {:op :reduce :body [{:op :let :value 1 :as :d}]}]} {:op :reduce :body [{:op :let :value 1 :as :e}]}]}`, "limit/visits"},
}

func doubling(n int) string {
	text := `{:nodes [{:op :let :value "xxxxxxxxxx" :as :s0}`
	for i := range n {
		text += fmt.Sprintf(` {:op :let :value [%s] :as :s%d}`, strings.Repeat(fmt.Sprintf("{:slot/id :s%d} ", i), 10), i+1)
	}
	return text + ` {:op :emit :input {:z 1}}]}`
}

func TestPlansThatGrow(t *testing.T) {
	for name, test := range growing {
		p := newProject(t, map[string]string{"p.edn": test.plan, ".stone/stone.edn": `{:limits {:visits 5000}}`})
		if r := p.stone("run", "--no-db", "p.edn"); r.code != 1 || !strings.Contains(r.stderr, test.want) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A plan that makes no call ends in time as well.
func TestPlansEndInTime(t *testing.T) {
	p := newProject(t, map[string]string{"p.edn": growing["loop"].plan, ".stone/stone.edn": `{:limits {:visits 2147483647}}`})
	if r := p.stone("run", "--no-db", "--max-time", "1s", "p.edn"); r.code != 1 || !strings.Contains(r.stderr, "latency-ms") {
		t.Errorf("%+v", r)
	}
}

// A model whose plans ask it again without end is asked a bounded number of times, even
// without a budget. Before, it was 153,484 times in ten seconds.
func TestPlansThatCallWithoutEnd(t *testing.T) {
	for name, answer := range map[string]string{
		"retries": `{"nodes":[{"op":"call","intent":"a/b","cap/id":"m/x","requires":{"reply":"plan"},"dispatch":{"retry":{"same-cap-max":1000000},"repair":{"max":1000000}},"as":"a"}]}`,
		"loop":    `{"nodes":[{"op":"loop","max":1000000,"until":false,"body":[{"op":"call","intent":"a/b","cap/id":"m/x","requires":{"reply":"plan"},"dispatch":{"allow-failure?":true},"as":"a"}]}]}`,
		"itself":  `{"nodes":[{"op":"call","intent":"a/b","cap/id":"m/x","requires":{"reply":"plan"},"dispatch":{"allow-failure?":true},"as":"a"},{"op":"call","intent":"a/b","cap/id":"m/x","requires":{"reply":"plan"},"dispatch":{"allow-failure?":true},"as":"b"}]}`,
	} {
		body, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		s := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, body)
		}))
		p := newProject(t, map[string]string{
			"p.edn": `{:nodes [{:op :call :intent :a/b :cap/id :m/x :requires {:reply :plan} :as :x}]}`,
			".stone/stone.edn": `{:limits {:roundtrips 60} :providers {:own {:protocol :openai :url "` + s.URL + `/v1"}}
				:capabilities {:m/x {:cap/kind :llm :provider :own :model "m" :cap/intents #{:a/b} :cap/can-produce #{:plan :value}}}}`,
		})
		p.env = append(p.env, "STONE_TRUST=1") // the user trusts the folder, not the model
		r := p.stone("run", "--no-db", "p.edn")
		// A model is told once, within its round trip, what is wrong with its plan.
		if n := s.requests.Load(); (n == 2) != (name == "retries") || n != 2 && n < 60 || n > 2*60 {
			t.Errorf("%s: %d requests, %+v", name, n, r)
		}
	}
}

// A server that streams without end: text, or the arguments of one call. Without a
// limit, the process ended at 4 GB.
func TestStreamsThatNeverEnd(t *testing.T) {
	piece := strings.Repeat("x", 1<<20)
	for name, chunk := range map[string]string{
		"text":      `{"choices":[{"index":0,"delta":{"content":"` + piece + `"}}]}`,
		"reasoning": `{"choices":[{"index":0,"delta":{"reasoning_content":"` + piece + `"}}]}`,
		"arguments": `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"` + piece + `"}}]}}]}`,
	} {
		var sent atomic.Int64
		s := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				n, err := fmt.Fprintf(w, "data: %s\n\n", chunk)
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		}))
		_, err := llm.Collect(t.Context(), openai.New(openai.Config{URL: s.URL + "/v1", Model: "m"}), &llm.Request{Messages: []llm.Message{llm.User("hi")}})
		if _, ok := errors.AsType[*llm.ProtocolError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
		if n := sent.Load(); n > 256<<20 {
			t.Errorf("%s: %d bytes were taken", name, n)
		}
	}
}

// A document of millions of choices took 3.2 GB. The first one is the answer.
func TestManyChoices(t *testing.T) {
	const n = 200_000
	s := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"first"},"finish_reason":"stop"}`+strings.Repeat(`,{"a":1}`, n)+`]}`)
	}))
	m := openai.New(openai.Config{URL: s.URL + "/v1", Model: "m"})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	reply, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("hi")}})
	runtime.ReadMemStats(&after)
	if err != nil || reply.Text != "first" {
		t.Errorf("%v, %+v", err, reply)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 64*n {
		t.Errorf("%d bytes were allocated for %d choices", taken, n)
	}
}

// A turn of ten thousand calls, and arguments that no node can hold: the tool runs as often as
// a turn may have calls, and the turn that was paid for is kept.
func TestToolCalls(t *testing.T) {
	call := func(i int, args string) string {
		return fmt.Sprintf(`{"index":%d,"id":"c%[1]d","function":{"name":"act","arguments":%s}}`, i, args)
	}
	var many []string
	for i := range 10_000 {
		many = append(many, call(i, `"{\"n\":1}"`))
	}
	for name, test := range map[string]struct {
		calls string
		runs  int64
	}{
		"many calls":     {strings.Join(many, ","), 128},
		"a name twice":   {call(0, `"{\"n\":1,\"n\":2}"`), 0},
		"a large number": {call(0, `"{\"n\":1e999}"`), 0},
		"long arguments": {call(0, `"{\"n\":1,\"x\":\"`+strings.Repeat("x", 2<<20)+`\"}"`), 0},
	} {
		var asked, ran atomic.Int64
		s := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if asked.Add(1) > 1 {
				io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"done"},"finish_reason":"stop"}]}`)
				return
			}
			io.WriteString(w, `{"choices":[{"index":0,"message":{"tool_calls":[`+test.calls+`]},"finish_reason":"tool_calls"}]}`)
		}))
		act := tool.Func("act", "Acts.", func(context.Context, struct {
			N int `json:"n"`
		}) (string, error) {
			ran.Add(1)
			return "done", nil
		})
		out := dag.NewType[agent.Text]("answer")
		a := agent.New("a", out, openai.New(openai.Config{URL: s.URL + "/v1", Model: "m"}), agent.Config{User: agent.Say("hi"), Use: []agent.Middleware{act}})
		if _, err := stone.Run(t.Context(), a, stone.Config{}); err != nil || ran.Load() != test.runs {
			t.Errorf("%s: %v, the tool ran %d times, want %d", name, err, ran.Load(), test.runs)
		}
	}
}

// A check whose pattern comes from a plan ends with the run: this one took 99 seconds.
func TestPatternsEnd(t *testing.T) {
	p := newProject(t, map[string]string{"p.edn": `{:nodes [{:op :call :intent :cel/eval :cap/id :solver/cel :input {:expression "a" :vars {:a "` + strings.Repeat("a", 1<<20) + `"}}
		:constraints {:regex "(a?){900}b"} :done {:must #{:regex}} :as :x}]}`})
	if r := p.stone("run", "--no-db", "p.edn"); r.code != 1 || !strings.Contains(r.stderr, "too much work") {
		t.Errorf("%+v", cutResult(r))
	}
}

func cutResult(r result) result {
	r.stdout, r.stderr = r.stdout[:min(len(r.stdout), 500)], r.stderr[:min(len(r.stderr), 1500)]
	return r
}
