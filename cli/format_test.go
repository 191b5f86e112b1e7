//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// TestServerWithoutSchemas has a server that refuses schemas, as DeepSeek's does, answer a typed call
// and a judge.
func TestServerWithoutSchemas(t *testing.T) {
	var refused atomic.Int32
	model := script.Func(func(_ int, req *llm.Request) script.Answer {
		if strings.Contains(req.System, `"score"`) {
			return script.Text(`{"score":1,"pass":true,"reason":"right"}`)
		}
		return script.Text("```json\n{\"city\":\"Paris\"}\n```")
	})
	url := fakeserver.Serve(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if bytes.Contains(body, []byte(`"json_schema"`)) {
			refused.Add(1)
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`)
			return
		}
		model.ServeHTTP(w, r)
	})
	for name, test := range map[string]struct {
		row     string
		refused int32 // by two commands
	}{
		"learned":  {"", 2},
		"in table": {`:models [{:model "m" :date "2026-11-22" :can #{:tools}}]`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inProject(t, "{}")
			refused.Store(0)
			files := map[string]string{
				".stone/stone.edn": fmt.Sprintf(`{:providers {:deepseek {:protocol :openai :url %q}} %s
 :schemas {:city {:type "object" :properties {:city {:type "string"}} :required ["city"] :additionalProperties false}}
 :capabilities {:model/small {:cap/kind :llm :provider :deepseek :model "m" :cap/intents #{:text/respond} :io/out-schema :city}
                :model/judge {:cap/kind :llm :provider :deepseek :model "m" :cap/intents #{:eval/grade}}}}`, url, test.row),
				"plan.edn":    `{:id "city" :nodes [{:op :call :intent :text/respond :input {:text {:slot/id :text}} :as :city} {:op :emit :input :city}]}`,
				"request.edn": `{:proto 1, :trace {:id "t-1"}, :task {:intent :text/respond}, :input {:text "Where is the Louvre?"}}`,
				"rows.csv":    "id,text,expected\n1,Where is the Louvre?,x\n",
			}
			for name, text := range files {
				file := filepath.Join(os.Getenv("HOME"), name)
				if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(os.Getenv("HOME"))
			t.Setenv("STONE_TRUST", "1")
			stone := func(args ...string) string {
				var out, errs bytes.Buffer
				if code := cli.Run(t.Context(), cli.Config{Parts: parts, Pipeline: cli.FromArgument, Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}); code != 0 {
					t.Fatalf("%q: exit code %d\n%s%s", args, code, &out, &errs)
				}
				return out.String()
			}
			if out := stone("act", "request.edn"); !strings.Contains(out, "Paris") {
				t.Errorf("act: %s", out)
			}
			if out := stone("eval", "-q", "plan.edn", "--data", "rows.csv", "--score", "judge:right", "--lanes", "1"); !strings.Contains(out, "1.0000") {
				t.Errorf("eval: %s", out)
			}
			if n := refused.Load(); n > 0 != (test.refused > 0) || n > 4 {
				t.Errorf("%d requests were refused", n)
			}
		})
	}
}
