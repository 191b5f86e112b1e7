package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// A Context is what a turn works with. It is passed by value: a middleware that
// changes something passes the changed copy on. It must not modify what slices
// hold, and clip those that it extends, as the methods do.
type Context struct {
	// DAG is the pipeline's, as far as the agent's queries allow.
	DAG dag.DAG
	// Agent is the name of the ashlar, Turn counts from 1.
	Agent string
	Turn  int

	// Messages is the conversation. The outermost middleware hands it over to
	// the next turn, and at the end to the node.
	Messages []llm.Message
	// What else the model is asked with in this turn.
	System    string
	Format    *llm.Format
	Model     string // overrides the model's own name if not empty
	MaxTokens int    // of the answer

	// Tools are offered to the model in this turn, by name each once.
	Tools []Tool

	// Reply is the model's answer, nil on the way in. It must not be modified.
	Reply *llm.Reply
	// Advice is what tools and middlewares recommend on the way out.
	Advice []Recommendation

	used *budget.Usage // by the models that the agent asks
}

// uses counts what a model has used up.
func (c Context) uses(u budget.Usage) {
	if c.used != nil {
		*c.used = c.used.Add(u)
	}
}

// Offer returns the context with one more tool. A tool of the same name that was
// offered before is replaced.
func (c Context) Offer(t Tool) Context {
	tools := make([]Tool, 0, len(c.Tools)+1)
	for _, other := range c.Tools {
		if other.Name != t.Name {
			tools = append(tools, other)
		}
	}
	c.Tools = append(tools, t)
	return c
}

// Say returns the context with one more message.
func (c Context) Say(m llm.Message) Context {
	c.Messages = append(c.Messages[:len(c.Messages):len(c.Messages)], m)
	return c
}

// Recommend returns the context with one more recommendation.
func (c Context) Recommend(r Recommendation) Context {
	c.Advice = append(c.Advice[:len(c.Advice):len(c.Advice)], r)
	return c
}

// A Handler does a turn, or the part of it that lies further in.
type Handler func(context.Context, Context) (Context, error)

// A Middleware is one ring around the model. It runs again when a run is
// resumed, so what it does must follow from what it is given; what does not, it
// does in a stone.Step.
type Middleware struct {
	// Name is unique in an agent.
	Name string
	// Tool is the tool that the middleware offers, nil if it offers none. It
	// stands here so that validators and tests see it before a run.
	Tool *Tool
	// Guard says whether the middleware takes part in a turn; nil is always.
	Guard func(Context) bool
	// Wrap does its work before and after next, which it calls at most once. An
	// error ends the agent with a failure. Nil only offers the Tool.
	Wrap func(ctx context.Context, c Context, next Handler) (Context, error)
	// Effects is what it does to the world beside what its Tool declares, with
	// what the tools do that Wrap offers.
	Effects []string
}

// A Tool is something that the model may have done.
type Tool struct {
	llm.Tool
	// Run does it. Input fits Schema. An error, or a panic, goes back to the model
	// as text it can act on; it does not end the agent, unless the context is done
	// or the error is kind.Waiting.
	Run func(ctx context.Context, input json.RawMessage) (Result, error)
	// Parallel says that it may run at the same time as other calls of a turn
	// that say so.
	Parallel bool
	// Timeout ends the context of a call; the model is told. Zero means unlimited. A Run
	// that does not watch its context is waited for all the same.
	Timeout time.Duration
	// MaxResult bounds the text of a result, in bytes; zero means 256 KiB, a negative
	// value means unlimited. The model is told how much was cut.
	MaxResult int
	// Effects is what it does to the world, as "fs/write".
	Effects []string
	// Err says why the tool cannot work as it was made, as with a name that
	// providers refuse. Validation reports it.
	Err error
}

// A Result is what a tool call gives back.
type Result struct {
	// Text is what the model reads.
	Text string
	// Meta is kept with the call in the conversation, for people and programs,
	// under MetaKey of the message's metadata.
	Meta map[string]any
	// Recommend is what the call recommends; nil recommends another turn.
	Recommend *Recommendation
}

// MetaKey is the key in a message's metadata under which the Meta of a tool's
// result is found.
const MetaKey = "stone/meta"

// Use makes the middleware that offers a tool.
func Use(t Tool) Middleware { return Middleware{Name: t.Name, Tool: &t} }
