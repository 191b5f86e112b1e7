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

// The command gives the gateway its embedder, and tokens to clients of Anthropic.
func TestGatewayOfCommand(t *testing.T) {
	embedder := httptest.NewServer(&script.Embedder{Dimensions: 4})
	defer embedder.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "stone.edn")
	text := fmt.Sprintf(`{:providers {:local {:protocol :openai, :url %q}}
 :search {:embedder {:provider :local, :model "m"}}
 :grant #{:net}}`, embedder.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	url, token, _ := server(t, "--config", config, "--db", filepath.Join(dir, "stone.db"), "--tokens", filepath.Join(dir, "tokens.json"))
	if status, text := request(t, "POST", url+"/v1/embeddings", `{"model":"stone/embedder","input":"granite"}`, token); status != 200 || !strings.Contains(text, `"embedding":[`) {
		t.Errorf("vectors: %d %s", status, text)
	}
	const message = `{"model":"stone/greet","max_tokens":9,"messages":[{"role":"user","content":"Ada"}]}`
	for key, want := range map[string]int{token: 200, "another": 401} {
		req := httptest.NewRequest("POST", url+"/v1/messages", strings.NewReader(message))
		req.RequestURI = ""
		req.Header.Set("X-Api-Key", key)
		resp, err := embedder.Client().Do(req.WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a message with the key: %d, want %d", resp.StatusCode, want)
		}
	}
}
