package fix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
)

// The models that are asked without --model.
const (
	openaiModel    = "gpt-5-mini"
	anthropicModel = "claude-sonnet-4-5"
)

// chooseModel takes the provider for which the environment has a key or an
// address, or else the script, which knows the sample only.
func chooseModel(name string, sample bool) (llm.Model, error) {
	switch {
	case os.Getenv("OPENAI_API_KEY") != "" || os.Getenv("OPENAI_BASE_URL") != "":
		return openai.New(openai.Config{Model: cmp.Or(name, openaiModel)}), nil
	case os.Getenv("ANTHROPIC_API_KEY") != "":
		return anthropic.New(anthropic.Config{Model: cmp.Or(name, anthropicModel)}), nil
	case sample:
		return &scripted{}, nil
	}
	return nil, errors.New("no model: set OPENAI_API_KEY, OPENAI_BASE_URL or ANTHROPIC_API_KEY; only the sample, without --dir, has a scripted one")
}

// scripted is a model whose answers are canned. They arrive over HTTP,
// from a server in this process that the first request starts: only the answers are
// canned.
type scripted struct {
	once  sync.Once
	model llm.Model
	err   error
}

func (s *scripted) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	s.once.Do(s.start)
	if s.err != nil {
		return func(yield func(llm.Delta, error) bool) { yield(llm.Delta{}, s.err) }
	}
	return s.model.Stream(ctx, req)
}

func (s *scripted) start() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.err = fmt.Errorf("scripted model: %w", err)
		return
	}
	go http.Serve(listener, script.Func(act)) // ends with the process
	s.model = openai.New(openai.Config{Model: "scripted", URL: "http://" + listener.Addr().String(), Key: "none"})
}

// act plays the model. Its answer depends on the request alone: the agent that asks, the
// output of the tests, and the results of its tools so far.
func act(_ int, req *llm.Request) script.Answer {
	if !strings.Contains(req.System, "repair Go packages") {
		return script.Text("Mean divided by the number of values plus one. It now divides by their number, and returns 0 for none.")
	}
	results := 0
	for _, m := range req.Messages {
		if m.Role == llm.RoleTool {
			results++
		}
	}
	first := strings.Contains(req.Messages[0].Text(), "want 2")
	switch {
	case results == 0:
		return script.Call("read_file", `{"path":"stats.go"}`)
	case results == 1 && first: // sure, and wrong: it forgets the empty list
		return script.Call("edit_file", `{"path":"stats.go","old_string":"len(values)+1","new_string":"len(values)"}`)
	case results == 1:
		return script.Call("edit_file", `{"path":"stats.go","old_string":"\tsum := 0.0\n","new_string":"\tif len(values) == 0 {\n\t\treturn 0\n\t}\n\tsum := 0.0\n"}`)
	case first:
		return script.Text("The divisor was one too large.")
	}
	return script.Text("The mean of no values was 0/0; now it is 0.")
}
