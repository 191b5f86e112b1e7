package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// A Context is the state of a turn. It is passed by value: a middleware passes a changed copy to next. A middleware must not
// modify the elements of slices, and must clip a slice before appending to it, as the methods do.
type Context struct {
	// DAG is the pipeline's DAG, limited to the agent's queries.
	DAG dag.DAG
	// Agent is the ashlar's name. Turn is the number of the turn, counted from 1.
	Agent string
	Turn  int

	// Messages is the conversation. The messages that the outermost middleware returns become the conversation of the next turn
	// and, after the last turn, of the node.
	Messages []llm.Message
	// System and the following fields belong to this turn's request.
	System    string
	Format    *llm.Format
	Model     string // replaces the model's own name if not empty
	MaxTokens int    // the limit on the length of the answer
	// Params are the settings of this turn; nil means none. A middleware may pass on other settings but must not modify these.
	// Initially they are Config.Params; a forced tool choice becomes "auto" after a call.
	Params *llm.Params

	// Tools are offered to the model in this turn. Their names are unique.
	Tools []Tool

	// Reply is the model's answer, or nil on the way in. It must not be modified.
	Reply *llm.Reply
	// Advice lists the recommendations that tools and middlewares have made in this turn, on the way out.
	Advice []Recommendation

	models   *models      // the models that the agent calls
	question *llm.Message // the message that the agent answers; nil if unknown
	prefix   *llm.Prefix  // the size of the last request, as its reply reported it
}

// request returns a request with only those parts of the turn's request that are needed to estimate its size.
func (c Context) request() *llm.Request {
	return &llm.Request{System: c.System, Messages: c.Messages, Tools: wired(c.Tools), ResponseFormat: c.Format, Prefix: c.prefix}
}

// models holds the known facts about the models of an agent. It is not part of Context, because every byte of a Context is copied
// many times onto the stacks of waiting agents.
type models struct {
	usage  budget.Usage
	window int // the window of the agent's own model, from the table
	full   int // total tokens of a prompt and an answer that did not fit
}

// uses adds u to the usage of the agent's models.
func (c Context) uses(u budget.Usage) {
	if c.models != nil {
		c.models.usage = c.models.usage.Add(u)
	}
}

// Window returns the model's limit on the total length of the prompt and the answer, in tokens. It returns 0 if the limit is
// unknown: no table contains it (see llm.WithTable), and no request has been rejected as too long.
func (c Context) Window() int {
	if c.models == nil {
		return 0
	}
	if c.models.full > 0 && (c.models.window <= 0 || c.models.full < c.models.window) {
		return c.models.full
	}
	return c.models.window
}

// Offer returns a copy of c that also offers the tool t. If c already has a tool of that name, t replaces it.
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

// Say returns a copy of c with m appended to its messages.
func (c Context) Say(m llm.Message) Context {
	c.Messages = append(c.Messages[:len(c.Messages):len(c.Messages)], m)
	return c
}

// Recommend returns a copy of c with r appended to its advice.
func (c Context) Recommend(r Recommendation) Context {
	c.Advice = append(c.Advice[:len(c.Advice):len(c.Advice)], r)
	return c
}

// A Handler runs a turn, or the part of a turn that a middleware wraps.
type Handler func(context.Context, Context) (Context, error)

// A Middleware wraps a turn of the model. It runs again when a run is resumed, so it must be deterministic and do any other work
// in a stone.Step.
type Middleware struct {
	// Name must be unique in an agent.
	Name string
	// Tool is the tool that the middleware offers, or nil. It is a field so that validators and tests can see the tool before a
	// run.
	Tool *Tool
	// Guard reports whether the middleware takes part in a turn; nil means always.
	Guard func(Context) bool
	// Wrap does its work before and after calling next. It calls next once at most, but may call it again after an error. An
	// error that Wrap returns ends the agent with a failure. If Wrap is nil, the middleware only offers the Tool.
	Wrap func(ctx context.Context, c Context, next Handler) (Context, error)
	// Bound returns the most that Wrap can cost in a turn, excluding the cost of next. Wrap may change the conversation and the
	// tools of the request that it passes to next, but not the model. Nil means unknown; see stone.Ashlar.Bound.
	Bound func(context.Context) budget.Bound
	// Reads lists the queries of Wrap for Context.DAG, in addition to the agent's own queries.
	Reads []dag.Querier
	// Effects are the middleware's effects on the world, in addition to the effects of Tool. They include the effects of tools
	// that Wrap offers.
	Effects []string
}

// A Tool is a function that the model may call.
type Tool struct {
	llm.Tool
	// Run runs a call. The input fits Schema. An error or a panic is passed to the model as text and does not end the agent,
	// unless the context is done or the error is kind.Waiting or kind.NoFrontend.
	Run func(ctx context.Context, input json.RawMessage) (Result, error)
	// Preview returns the text that is shown to a person before the call in place of the arguments, for example a file's diff. If
	// Preview returns an error, the call fails. If Preview is nil, the arguments are shown.
	Preview func(ctx context.Context, input json.RawMessage) (string, error)
	// Parallel means that a call of this tool may run at the same time as the turn's other calls of Parallel tools.
	Parallel bool
	// Client means that the run's client executes calls of this tool. Run passes a call to the client as a question. While one
	// call of a turn is waiting for its answer, the questions for later calls of such tools are asked too, even if the calls
	// before them have not run. A client thus receives all of its calls at once.
	Client bool
	// Timeout limits a call: its context is then cancelled and the model is told. Zero means unlimited. The agent still waits for
	// a Run that ignores its context.
	Timeout time.Duration
	// MaxResult limits the text of a result that the model receives, in bytes. Zero means 64 KiB, and a negative value means
	// unlimited. A longer result is kept; see the package comment.
	MaxResult int
	// Bound returns the most that a call can cost. Nil means that Run costs nothing.
	Bound func(context.Context) budget.Bound
	// Asks means that Run may ask a person, in a question named after agent and tool, such as
	// "fix/write_file". Validate warns if no one can answer. See tool.Ask.
	Asks bool
	// Effects are the tool's effects on the world, such as "fs/write". Nil means that the effects are unknown, and an empty list
	// means that there are none; see stone.Ashlar.Undeclared.
	Effects []string
	// Err is the reason why the tool cannot work, such as a name that providers reject, or nil. Validation reports it.
	Err error
	// Left is the reason why an optional tool is not offered, such as a foreign schema that cannot be read, or nil.
	// Validation warns of it.
	Left error

	runs *pipeline // see AsTool
}

// A Result is the result of a tool call.
type Result struct {
	// Text is the text for the model.
	Text string
	// Media contains pictures, sounds and documents for the model, at most llm.MaxMedia bytes in total. The model is told about
	// media that cannot be shown to it. The media of a failed call are not shown.
	Media []*llm.Media
	// Meta is data about the call for people and programs. The conversation contains it in the metadata of the result's message,
	// under "stone/meta".
	Meta map[string]any
	// Recommend is the advice of the call; nil recommends another turn.
	Recommend *Recommendation
}

// metaKey is the key under which a message's metadata contains the Meta of a tool's result.
const metaKey = "stone/meta"

// Use returns a middleware that only offers the tool t.
func Use(t Tool) Middleware { return Middleware{Name: t.Name, Tool: &t} }
