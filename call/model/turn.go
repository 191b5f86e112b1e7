package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/llm"
)

// turn makes the request for a turn of a conversation: the prompts of the capability come
// before the system text, the context and the constraints of the call after the messages.
func (c Config) turn(req *call.Request) *llm.Request {
	turn := *req.Turn
	turn.Model = cmp.Or(c.Name, turn.Model)
	turn.System = strings.TrimSpace(c.system(req.Intent, wanted{}) + "\n\n" + turn.System)
	turn.Params = turn.Params.Or(c.Params)
	turn.MaxTokens = llm.Bound(cmp.Or(turn.MaxTokens, c.MaxTokens), req.Budget)
	if text := strings.Join(beside(req), "\n\n"); text != "" {
		turn.Messages = append(slices.Clip(turn.Messages), llm.User(text))
	}
	return &turn
}

// listener returns the function that hears the deltas of the answer.
func listener(req *call.Request) func(llm.Delta) {
	if req.Hear == nil {
		return func(llm.Delta) {}
	}
	return req.Hear
}
