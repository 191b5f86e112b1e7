package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/tool/mcp"
)

// ToolConfig names a tool. The zero value fails with call.Unavailable.
type ToolConfig struct {
	Server *Server
	Tool   string // its name on the server
}

// Check returns an error if the configuration is invalid. It starts nothing.
func (c ToolConfig) Check() error {
	if c.Server == nil || c.Tool == "" {
		return errors.New("mcp: no tool: set Server and Tool")
	}
	return c.Server.Check()
}

// New returns a capability of kind mcp. Its id defaults to mcp/ and the name of the tool.
// It needs the effects of the server: process for a command, net otherwise.
func New(m call.Metadata, c ToolConfig) call.Capability {
	if c.Server != nil {
		m = m.Needing(c.Server.cfg.Needs()...)
	}
	m.ID, m.Kind = cmp.Or(m.ID, "mcp/"+cmp.Or(c.Tool, "tool")), cmp.Or(m.Kind, "mcp")
	invalid := c.Check()
	return call.Capability{Metadata: m, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		if invalid != nil {
			return nil, unavailable(invalid)
		}
		return c.invoke(ctx, req)
	}}
}

func unavailable(err error) error {
	return &call.Error{Type: call.Unavailable, Message: err.Error(), Cause: err}
}

func (c ToolConfig) invoke(ctx context.Context, req *call.Request) (*call.Reply, error) {
	tool, err := c.Server.tool(ctx, c.Tool)
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
		return nil, &call.Error{Type: call.InputInvalid, Where: "input", Message: "the input does not fit the schema of the tool " + c.Tool + ": " + err.Error(), Cause: err}
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
	if start := (*mcp.StartError)(nil); errors.As(err, &start) || errors.Is(err, mcp.ErrClosed) {
		return unavailable(err)
	}
	return &call.Error{Type: call.InvokeFailed, Message: err.Error(), Cause: err}
}

// outOf prefers the structured content to the text, which is written for a model.
func outOf(result agent.Result) (call.JSON, error) {
	if data, ok := result.Meta["structured"].(json.RawMessage); ok {
		return call.JSON(data), nil
	}
	if len(result.Text) > maxResult {
		return nil, &call.Error{Type: call.InvokeFailed, Message: fmt.Sprintf("the result has %d bytes of text: want at most %d", len(result.Text), maxResult)}
	}
	return json.Marshal(struct {
		Text  string       `json:"text"`
		Media []*llm.Media `json:"media,omitempty"`
	}{result.Text, result.Media})
}
