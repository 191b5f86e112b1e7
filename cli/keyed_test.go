//go:build unix

package cli_test

import (
	"net/http"
	"net/http/httptest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
)

// keyed is an agent whose model wants a key. With the argument "refuse" the server
// says the key back in its error, as some do.
func keyed(args []string) (stone.Ashlar, error) {
	model := script.Func(func(n int, _ *llm.Request) script.Answer {
		if n == 0 {
			return script.Call("notes", `{"text":"PROMPT-input"}`)
		}
		return script.Text("PROMPT-answer")
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(args) > 0 {
			http.Error(w, "wrong key: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		model.ServeHTTP(w, r)
	})) // ends with the process
	m := openai.New(openai.Config{Model: "m", URL: server.URL, Key: "sk-key-of-keyed"})
	return agent.New("talk", dag.NewType[agent.Text]("said"), m, agent.Config{System: agent.Say("PROMPT-system"), User: agent.Say("PROMPT-user")}), nil
}
