package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// Capability returns a capability of kind mcp that calls the named tool. If m.ID is empty, the id is "mcp/" followed by the
// tool's name. The capability needs the effect process if the server is a command, otherwise net. The input of a request is
// checked against the tool's schema before the tool is called. The output is the structured content of the tool's result or, if
// there is none, {"text": …}, with "media" if the tool returned images, audio or files.
func (s *OnDemand) Capability(m call.Metadata, tool string) call.Capability {
	m = m.Needing(s.cfg.Needs()...)
	m.ID, m.Kind = cmp.Or(m.ID, "mcp/"+cmp.Or(tool, "tool")), cmp.Or(m.Kind, "mcp")
	invalid := s.Check()
	if tool == "" {
		invalid = errors.New("mcp: no tool: name one")
	}
	return call.Capability{Metadata: m, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		if invalid != nil {
			return nil, unavailable(invalid)
		}
		return s.invoke(ctx, tool, req)
	}}
}

func unavailable(err error) error {
	return &call.Error{Type: reasons.Unavailable, Message: err.Error(), Cause: err}
}

func (s *OnDemand) invoke(ctx context.Context, name string, req *call.Request) (*call.Reply, error) {
	tool, err := s.tool(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, unavailable(err)
	}
	input := json.RawMessage(req.Input)
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	if err := fits(ctx, tool, input); err != nil {
		return nil, &call.Error{Type: reasons.InputInvalid, Where: "input", Message: "the input does not fit the schema of the tool " + name + ": " + err.Error(), Cause: err}
	}
	result, err := tool.Run(ctx, input)
	if err != nil {
		return nil, failure(ctx, err)
	}
	out, err := outOf(result)
	if err != nil {
		return nil, err
	}
	confined, _ := result.Meta["sandbox"].(string)
	return &call.Reply{Type: call.Value, Out: out, Usage: call.Usage{Sandbox: confined}}, nil
}

func fits(ctx context.Context, tool *agent.Tool, input json.RawMessage) error {
	s, _, err := schema.ParseForeign(tool.Schema)
	if err != nil {
		return err
	}
	return s.Validate(ctx, input)
}

func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if start := (*StartError)(nil); errors.As(err, &start) || errors.Is(err, ErrClosed) {
		return unavailable(err)
	}
	return &call.Error{Type: reasons.InvokeFailed, Message: err.Error(), Cause: err}
}

// outOf returns the output for a result: the structured content or, if there is none, the text, which is written for a model.
func outOf(result agent.Result) (call.JSON, error) {
	if data, ok := result.Meta["structured"].(json.RawMessage); ok {
		return call.JSON(data), nil
	}
	if len(result.Text) > maxResult {
		return nil, &call.Error{Type: reasons.InvokeFailed, Message: fmt.Sprintf("the result has %d bytes of text: want at most %d", len(result.Text), maxResult)}
	}
	return json.Marshal(struct {
		Text  string       `json:"text"`
		Media []*llm.Media `json:"media,omitempty"`
	}{result.Text, result.Media})
}
