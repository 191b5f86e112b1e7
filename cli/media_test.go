//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

func init() { programs["shows"] = shows }

type receipt struct {
	Scan llm.Media `json:"scan"`
}

// shows has a picture in a node, in the prompt of an agent and in the result of its tool.
func shows() stone.Ashlar {
	scanned := dag.NewType[receipt]("scanned")
	picture := func() *llm.Media {
		return &llm.Media{Type: "image/png", Data: append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("pixels"), 5666)...)}
	}
	zoom := agent.Use(agent.Tool{Tool: llm.Tool{Name: "zoom"}, Run: func(context.Context, json.RawMessage) (agent.Result, error) {
		return agent.Result{Text: "closer", Media: []*llm.Media{picture()}}, nil
	}})
	return stone.Seq("shows",
		agent.New("look", dag.NewType[agent.Text]("look"), script.New(script.Call("zoom", "{}"), script.Text("a bakery")), agent.Config{
			User:  agent.Say("Look."),
			Media: dag.Derive(dag.Nothing, func(struct{}) []*llm.Media { return []*llm.Media{picture()} }),
			Use:   []agent.Middleware{zoom},
		}),
		stone.Func0("scan", scanned, func(context.Context) (receipt, error) { return receipt{*picture()}, nil }),
	)
}
