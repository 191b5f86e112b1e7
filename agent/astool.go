package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// AsTool returns a middleware that offers the pipeline p, such as an agent or a call, as a tool:
//
//	research := agent.New("research", Findings, model, agent.Config{
//		User: agent.Prompt(Question, func(q QuestionDoc) string { return q.Text }),
//		Use:  []agent.Middleware{search},
//	})
//	lead := agent.New("lead", Report, model, agent.Config{
//		User: agent.Prompt(Topic, func(t TopicDoc) string { return t.Text }),
//		Use: []agent.Middleware{
//			agent.AsTool("research", "Answers one question.", research, Question, Findings, tool.Parallel()),
//		},
//	})
//
// The arguments of a call are the content of a node of type in, which must be an object. The pipeline p starts on the agent's DAG
// with that node added, and p's queries count as the agent's queries. The model receives the content of the nearest node of type
// out that p produces, without its conversation. If p is an agent that produces [Text], the result is the text. The model also
// receives the media in the content.
//
// The pipeline p is part of the run. Its steps are recorded below the call, as in "lead/tool-2-1/research/turn-1", so a resumed
// run continues within it. The pipeline draws on the agent's account. The tool has p's effects, and the run's frontend receives
// p's questions. If p fails, the model is told and can react. An exhausted account, a cancellation or a question waiting for its
// answer ends the agent, as it would outside a tool. When the agent ends, the nodes of p are kept beside the agent's node, where
// later steps can read them with [Made].
//
// The options come from package tool. With tool.Parallel, for example, the calls of one turn run p several times at once.
// Validate checks p as part of the agent.
func AsTool(name, description string, p stone.Ashlar, in, out dag.AnyType, options ...func(*Tool)) Middleware {
	t := Tool{Tool: llm.Tool{Name: name, Description: description, Schema: json.RawMessage(`{"type":"object"}`)}}
	arguments, err := argumentsOf(p, in, out)
	if t.Err = err; err != nil {
		t.Err = fmt.Errorf("tool %s: %w", name, t.Err)
		t.Run = func(context.Context, json.RawMessage) (Result, error) { return Result{}, t.Err }
		return Use(t)
	}
	t.Schema, t.Effects = arguments.JSON(), p.Effects()
	t.runs = &pipeline{p, in, out}
	t.Run = t.runs.run
	for _, o := range options {
		o(&t)
	}
	return Use(t)
}

// Made returns a reader that yields the contents of all nodes of type t produced by earlier steps, including steps of pipelines
// used as tools. If no step has produced one, for example because the model has not called the tool, the list is empty.
func Made[T any](t dag.Type[T]) dag.Reader[[]T] {
	return dag.Derive(dag.Maybe(dag.History(t)), func(list *[]T) []T {
		if list == nil {
			return nil
		}
		return *list
	})
}

// argumentsOf returns the schema of a tool's arguments.
func argumentsOf(p stone.Ashlar, in, out dag.AnyType) (*schema.Schema, error) {
	switch {
	case p.IsZero():
		return nil, fmt.Errorf("the pipeline is the zero Ashlar: pass a pipeline")
	case in == nil || out == nil:
		return nil, fmt.Errorf("the input type or the output type is nil: pass both")
	case in.Err() != nil:
		return nil, in.Err()
	case out.Err() != nil:
		return nil, out.Err()
	}
	if s := in.Schema(); s != nil {
		if closed, err := s.Closed(); err == nil {
			return closed, nil
		}
	}
	return nil, fmt.Errorf("the input type %q is not a JSON object: use a type whose content is a struct", in.Name())
}

// pipeline is the pipeline that a tool made by AsTool runs.
type pipeline struct {
	ashlar  stone.Ashlar
	in, out dag.AnyType
}

// jobKey is the key of the *job in the context of a tool.
type jobKey struct{}

// CallIn returns the tool call that is running in ctx, the context passed to Tool.Run, so that the call can be shown to the
// person who decides on it. Outside a tool call, CallIn returns false.
func CallIn(ctx context.Context) (ask.Call, bool) {
	j, ok := ctx.Value(jobKey{}).(*job)
	if !ok {
		return ask.Call{}, false
	}
	c := ask.Call{ID: j.call.ID, Tool: j.call.Name, Input: j.call.Input}
	if input, err := canon.AppendJSON(nil, c.Input); err == nil { // the record contains the input in canonical form, too
		c.Input = input
	}
	if r := j.context.Reply; r != nil {
		c.Said = r.Text
	}
	for _, m := range slices.Backward(j.context.Messages) {
		if m.Role == llm.RoleUser {
			c.Request = m.Text()
			break
		}
	}
	return c, true
}

// run is the Run of the tool. Outside an agent, the pipeline starts on an empty DAG.
func (p *pipeline) run(ctx context.Context, input json.RawMessage) (Result, error) {
	var start dag.DAG
	j, within := ctx.Value(jobKey{}).(*job)
	if within = within && j.tool.runs != nil; within {
		p = j.tool.runs // Rebuild may have changed it.
		var err error
		if start, err = j.lane(); err != nil {
			return Result{}, err
		}
	}
	n, err := dag.NewNode(dag.Spec{Type: p.in.Name(), Content: input, Parents: start.Next()})
	if err != nil {
		return Result{}, err
	}
	if start, err = start.Append(n); err != nil {
		return Result{}, err
	}
	end := stone.In(ctx).RunDynamic(p.ashlar, start, nil)
	if within {
		j.end = end
	}
	if end.InFlight() {
		return Result{}, end.Cause()
	}
	if n, err = end.Nearest(p.out.Name()); err != nil || !slices.Contains(end.Beyond(start), n) {
		return Result{}, fmt.Errorf("%q produced no %s", p.ashlar.Name(), p.out.Name())
	}
	if t, free := p.out.(dag.Type[Text]); free {
		text, err := t.Of(n)
		return Result{Text: text.Text}, err
	}
	shown, media, err := structured.Media([]byte(n.Own()), p.out.Schema())
	return Result{Text: string(shown), Media: media}, err
}
