package gateway_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/gateway"
	"github.com/stonelayer/stone/x/gateway/internal/openai"
)

// Every parameter with a value of every wrong type is taken or refused in OpenAI's form.
func TestParametersOfEveryType(t *testing.T) {
	text := dag.NewType[string]("text")
	echo := stone.Func("echo", text, dag.NewType[string]("answer"), func(_ context.Context, s string) (string, error) { return s, nil })
	s, err := serve.New(serve.Config{Journal: memdb.New(t), Pipelines: []serve.Pipeline{{Ashlar: echo}}, Protocols: []serve.Protocol{gateway.Part}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for path, input := range map[string]string{"/v1/responses": `"input":"x"`, "/v1/chat/completions": `"messages":[{"role":"user","content":"x"}]`} {
		for _, p := range openai.Parameters {
			for _, value := range []string{`7`, `-1`, `"x"`, `true`, `[7]`, `{"a":7}`, `[[]]`, `[{"type":7}]`, `null`} {
				body := map[string]json.RawMessage{}
				if err := json.Unmarshal([]byte(`{"model":"stone/echo",`+input+`}`), &body); err != nil {
					t.Fatal(err)
				}
				body[p.Name] = json.RawMessage(value)
				request, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				w := httptest.NewRecorder()
				s.ServeHTTP(w, httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(string(request))))
				if reply := w.Body.String(); w.Code != 200 && (w.Code < 400 || w.Code >= 500) || w.Code != 200 && !strings.HasPrefix(reply, `{"error":{`) {
					t.Errorf("%s: %s of %s: %d %.300s", path, p.Name, value, w.Code, reply)
				}
			}
		}
	}
}
