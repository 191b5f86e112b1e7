package serve_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
)

// Clients get the vectors of the configured embedder. LangChain gets answers, too.
func TestEmbeddingClients(t *testing.T) {
	strong := formatted{looker(func(tool llm.Tool) string { return `{"at":"it"}` }), says(`{"town":"Paris"}`)}
	h := gatewayServerOf(t, serve.Config{Applicator: gated(says("whatever"), strong), Embedder: &script.Embedder{Dimensions: 32}, Grant: []string{"net"}})
	got := runModule(t, "testdata/embeddings.mjs", h.URL, "openai", "ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible", "@langchain/openai", "@langchain/core")
	peer.Held(t, "@langchain/openai", "answers", "streams", "tools", "typed answers", "embeddings")
	peer.Held(t, "openai", "embeddings")
	peer.Held(t, "ai", "embeddings")
	want := `openai: [2,32,"stone/embedder",2]
openai floats: true
error dimensions: [400,"unsupported_parameter","dimensions"]
error tokens: [400,"invalid_type","input"]
error blank: [400,"invalid_value","input"]
error model: [404,"model_not_found","model"]
models: ["stone/asks","stone/chat","stone/chat/answer","stone/chat/net","stone/count","stone/slow","stone/text/loud","stone/upper"]
langchain: [true,3]
langchain chat: "polite"
langchain chat stream: "polite"
langchain chat tools: "polite: seen it"
langchain chat object: {"town":"Paris"}
langchain responses: "polite"
langchain responses stream: "polite"
langchain responses tools: "polite: seen it"
langchain responses object: {"town":"Paris"}
ai: true
ai many: [32,32]
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// Requests for vectors are held to roles, grants and budgets.
func TestEmbeddings(t *testing.T) {
	const body = `{"model":"stone/embedder","input":["granite","slate"]}`
	failing := &script.Embedder{Dimensions: 4, Fail: func(n int, _ *llm.EmbedRequest) error {
		if n > 0 {
			return errors.New("no more vectors")
		}
		return nil
	}}
	who := principals{
		"actor": {Name: "actor", Roles: []serve.Role{serve.Act}}, "starter": {Name: "starter", Roles: []serve.Role{serve.Start}},
		"poor": {Name: "poor", Limits: budget.Limits{Tokens: new(1)}}, "offline": {Name: "offline", Grant: []string{"fs"}},
	}
	h := gatewayServerOf(t, serve.Config{Embedder: failing, Grant: []string{"net"}, Access: who})
	for _, tt := range []struct {
		who    string
		status int
		part   string
	}{
		{"nobody", 401, "authentication_error"}, {"starter", 403, "permission_error"}, {"poor", 429, "insufficient_quota"}, {"offline", 422, "net"},
		{"actor", 200, `"object":"list"`}, {"actor", 502, "no more vectors"},
	} {
		if status, text := h.do("POST", "/v1/embeddings", body, "Authorization", "Bearer "+tt.who); status != tt.status || !strings.Contains(text, tt.part) {
			t.Errorf("%s: %d %s", tt.who, status, text)
		}
	}
	h = gatewayServer(t, gated(says("polite"), says("polite")), nil)
	h.want("POST", "/v1/embeddings", body, 404, "this server has no embedder")
}
