package ui_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/ui"
)

// A pipeline answers a message of the AI SDK.
func Example() {
	message, answer := dag.NewType[string]("message"), dag.NewType[string]("answer")
	echo := stone.Func("echo", message, answer, func(_ context.Context, text string) (string, error) { return "You said: " + text, nil })
	db, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	s, err := serve.New(serve.Config{Journal: db, Pipelines: []serve.Pipeline{{Ashlar: echo}}, Protocols: []serve.Protocol{ui.Part}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	body := `{"id": "chat-1", "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "slate"}]}]}`
	reply := httptest.NewRecorder()
	s.ServeHTTP(reply, httptest.NewRequest("POST", "http://localhost/v1/ui/echo", strings.NewReader(body)))
	for line := range strings.Lines(reply.Body.String()) {
		if strings.Contains(line, `"text-delta"`) {
			fmt.Print(line)
		}
	}
	// Output:
	// data: {"delta":"You said: slate","id":"chat-1-turn-1~answer/text","type":"text-delta"}
}
