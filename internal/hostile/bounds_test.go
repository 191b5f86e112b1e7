package hostile

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stonelayer/stone/schema"
)

// A tool server's schema of 75 bytes and a result of 400: before the verdicts of a walk were
// kept, 22 levels took 8 GB and the process with it.
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
// machine, and the loop and the maps went on whatever --max-time said.
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

// A model whose plans ask it again without end is asked a bounded number of times, though
// nobody has set a budget. On 9af6f95 it was 153,484 times in ten seconds.
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
		r := p.stone("run", "--no-db", "p.edn")
		if n := s.requests.Load(); (n == 1) != (name == "retries") || n != 1 && n < 60 || n > 61 {
			t.Errorf("%s: %d requests, %+v", name, n, r)
		}
	}
}
