package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asking is a project with one model, which answers greetings.
func asking(t *testing.T) (*project, *till) {
	x := newTill(t)
	p := newProject(t, map[string]string{
		"c.edn": fmt.Sprintf(`{:providers {:own {:protocol :openai :url %q}}
			:capabilities {:m/x {:cap/kind :llm :provider :own :model "m" :cap/intents #{:text/greet}}}}`, x.URL),
		"r.edn": `{:proto 1 :trace {:id "r-4a2b"} :task {:intent :text/greet} :input {:prompt "Who is Ada?"}}`,
		"p.edn": `{:nodes [{:op :call :as :hail :intent :text/greet :input {:prompt "Who is Bob?"}} {:op :emit :input :slot/hail}]}`,
	})
	p.env = append(p.env, "STONE_LOG_LEVEL=debug")
	return p, x
}

// A model that is asked by a call is seen as one that is asked by an agent is: its
// prompt is in the trace, and every line says which ashlar it belongs to.
func TestCallsAreSeen(t *testing.T) {
	p, x := asking(t)
	for _, test := range []struct {
		args   []string
		prompt string
	}{
		{[]string{"act", "--config", "c.edn", "r.edn"}, "Who is Ada?"},
		{[]string{"run", "--no-db", "--config", "c.edn", "p.edn"}, "Who is Bob?"},
	} {
		file := test.args[0] + ".jsonl"
		before := x.requests.Load()
		if r := p.stone(append(test.args, "--trace", file)...); r.code != 0 || x.requests.Load() != before+1 {
			t.Fatalf("%v: %+v, %d requests", test.args, r, x.requests.Load()-before)
		}
		if r := p.stone("trace", "payload", file); !strings.Contains(r.stdout, test.prompt) || strings.Contains(r.stdout, "ashlar    -") {
			t.Errorf("%v: payload %+v", test.args, r)
		}
		text, err := os.ReadFile(filepath.Join(p.dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"request-id":"r-4a2b"`) != (test.args[0] == "act") {
				t.Errorf("%v: the id of the request: %s", test.args, line)
			}
		}
		r := p.stone("trace", "lifecycle", file)
		for _, event := range []string{"api-call", "api-response", "call-attempt", "call-verdict"} {
			found := 0
			for line := range strings.Lines(r.stdout) {
				if f := strings.Fields(line); len(f) > 2 && f[1] == event {
					if found++; f[2] == "-" {
						t.Errorf("%v: no ashlar in %s", test.args, line)
					}
				}
			}
			if found != 1 {
				t.Errorf("%v: %d of %s in\n%s", test.args, found, event, r.stdout)
			}
		}
	}
}

// A request that is sent again gets the recorded answer: no capability is asked and paid
// for it twice. One that only has the same id gets nothing.
func TestRequestsAreAnsweredOnce(t *testing.T) {
	p, x := asking(t)
	first := p.stone("act", "--config", "c.edn", "r.edn")
	again := p.stone("act", "--config", "c.edn", "r.edn")
	first.stdout = strings.Replace(first.stdout, ":mode :live", ":mode :replay", 1)
	if first.code != 0 || again != first || x.requests.Load() != 1 {
		t.Errorf("%d requests\n%+v\n%+v", x.requests.Load(), first, again)
	}
	other := `{"proto":1,"trace":{"id":"r-4a2b"},"task":{"intent":"text/greet"},"input":{"prompt":"Who is Eve?"}}`
	if err := os.WriteFile(filepath.Join(p.dir, "r.json"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := p.stone("act", "--config", "c.edn", "r.json"); r.code != 1 || !strings.Contains(r.stdout, "trace/id-used") || x.requests.Load() != 1 {
		t.Errorf("%d requests, %+v", x.requests.Load(), r)
	}
	if r := p.stone("act", "--no-db", "--config", "c.edn", "r.json"); r.code != 0 || x.requests.Load() != 2 {
		t.Errorf("%d requests, %+v", x.requests.Load(), r)
	}
}
