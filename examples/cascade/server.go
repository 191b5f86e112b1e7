package cascade

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
)

// models returns a maker of models that a server in this process replays. It starts
// to listen with the first request. Only the answers are canned.
func (e *exam) models() func(name string) llm.Model {
	address := sync.OnceValues(e.serve)
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			addr, err := address()
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}}
	return func(name string) llm.Model {
		return openai.New(openai.Config{Model: name, URL: "http://replay.invalid/v1", Key: "none", HTTPClient: client})
	}
}

func (e *exam) serve() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go http.Serve(listener, script.Func(e.reply)) // as long as the process lives
	return listener.Addr().String(), nil
}

// reply looks up the recorded answer of the model.
func (e *exam) reply(_ int, req *llm.Request) script.Answer {
	asked := req.Messages[len(req.Messages)-1].Text()
	said, ok := e.byText[asked][req.Model]
	if !ok {
		return script.Status(http.StatusNotFound, `{"error":{"message":"no answer is recorded for this question"}}`)
	}
	text := said.Text
	if strings.TrimSpace(text) == "" {
		text = "(no answer)" // the client takes an empty reply for an error of the server
	}
	a := script.Text(text)
	in, out := estimate(asked), estimate(said.Text)
	a.Reply.Usage = llm.Usage{InputTokens: &in, OutputTokens: &out}
	return a
}
