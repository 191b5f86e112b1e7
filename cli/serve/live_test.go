package serve_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/llm/script"
)

// The configuration names the models that stream before the checks accept the answer. Only their
// clients see an answer that is rejected.
func TestLiveByConfiguration(t *testing.T) {
	behind := httptest.NewServer(script.New(script.Text("whatever"), script.Text("whatever"), script.Text("whatever"), script.Text("whatever")))
	defer behind.Close()
	for live, want := range map[string]string{":chat/answer": "retracted", "": "eval/must-failed"} {
		file := filepath.Join(t.TempDir(), "stone.edn")
		text := fmt.Sprintf(`{:providers {:near {:protocol :openai-chat :url %q}}
 :capabilities {:m/one {:cap/kind :llm :provider :near :model "m" :cap/intents #{:chat/answer}}
                :m/two {:cap/kind :llm :provider :near :model "m" :cap/intents #{:chat/answer}}}
 :checks {:polite {:regex "polite"}}
 :grant #{:net}
 :policy {:intents {:chat/answer {:done {:must #{:polite}}}}}
 :serve {:live #{%s}}}`, behind.URL+"/v1", live)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		url, token, end := server(t, "--config", file, "--trust", "--db", filepath.Join(t.TempDir(), "stone.db"), "--tokens", filepath.Join(t.TempDir(), "tokens.json"))
		status, got := request(t, "POST", url+"/v1/responses", `{"model":"stone/chat/answer","stream":true,"input":"x"}`, token)
		if status != 200 || strings.Contains(got, `"delta":"whatever"`) != (live != "") || !strings.Contains(got, want) {
			t.Errorf("live %q: %d %s", live, status, got)
		}
		if code := end(); code != 0 {
			t.Errorf("the exit code is %d", code)
		}
	}
}
