package journal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/schema"
)

// Parent is the name of a child's label that contains the ID of the run that started the child. See [Elsewhere].
const Parent = "parent"

// childPrefix is the prefix of each child's ID.
const childPrefix = "child-"

// A Starter runs a run's children elsewhere: on Temporal workers, or on a Stone server. Its methods may be called concurrently,
// and may be called again with the same child after a failure or by another process. They must retry after errors that may be
// temporary.
type Starter interface {
	// Start starts the child. If the child has failed, was canceled or lost its process, Start resumes it. If the child is running,
	// waiting or done, Start does nothing.
	Start(ctx context.Context, c Child) error
	// Wait blocks until the child is Done, Failed, Canceled, Refused or Waiting, and returns its state.
	Wait(ctx context.Context, c Child) (ChildState, error)
	// Answer answers the child's question at path, after which the child continues. It returns nil if the question has already been
	// answered.
	Answer(ctx context.Context, c Child, path string, a ask.Answer) error
	// Cancel cancels the child. It returns nil if the child has already ended or does not exist.
	Cancel(ctx context.Context, id string) error
}

// A Child is a run that another run starts.
type Child struct {
	ID       string
	Pipeline stone.Ashlar
	Input    json.RawMessage // input, in the format that tree.ReadInput reads
	Labels   map[string]string
	Grant    []string // restricts the rights that the child's process grants; nil means no restriction
	Limits   budget.Limits
}

// A ChildState describes the state of a child to its parent.
type ChildState struct {
	State     State
	Result    json.RawMessage // content of the child's result; only if Done
	Failure   *Failure
	Usage     budget.Total
	Questions []Question // open questions of the child; only if Waiting
}

// Elsewhere returns a leaf that runs a pipeline in another process, as a separate run, called a child. The leaf reads the
// pipeline's input types, passes their values to the child, and produces the child's result. If the pipeline reads the latest node
// or the whole DAG, it sees only these values. An agent's conversation is not passed on.
//
//	stone.Map("chunks", chunks, chunk, journal.Elsewhere("classify", classify, budget.Limits{USD: new(1.0)}, workers))
//
// The child's ID is derived from the run, the place, the attempt and the child's work. The same attempt therefore finds its child
// again in another process, and resumes it if it failed. A new attempt starts a new child.
//
// The child's limits are fixed when it starts. The run's account reserves them, and when the child ends, the account is charged
// for the child's spending and for all round trips that the limits allow. If a limit is not set, it defaults to what remains of the
// run's own limit. The run's shared budgets also limit a child in the same journal, and count the child's cost only once.
//
// The child has at most the rights of the run. The parent run asks the child's questions, each at a path that ends with the
// question's path in the child. Canceling a run cancels its children, and removing it removes the children in the same journal.
// Children have the label [Parent].
func Elsewhere(name string, pipeline stone.Ashlar, limits budget.Limits, starter Starter) stone.Ashlar {
	e := &elsewhere{name: name, pipeline: pipeline, limits: limits, starter: starter, out: pipeline.Result()}
	opts := []stone.LeafOption{stone.Version(pipeline.Fingerprint().String())}
	for _, in := range tree.Inputs(pipeline) {
		if in.Inner {
			continue
		}
		q := in.Type.Query()
		if in.Many {
			q = q.All()
		}
		if in.Optional {
			q = q.Optional()
		}
		opts = append(opts, stone.Queries(q))
	}
	if effects := pipeline.Effects(); len(effects) > 0 || len(pipeline.Undeclared()) == 0 {
		opts = append(opts, stone.Effects(effects...))
	}
	return stone.Leaf(name, e.out, e.body, opts...)
}

// elsewhere is the leaf that Elsewhere returns.
type elsewhere struct {
	name     string
	pipeline stone.Ashlar
	limits   budget.Limits
	starter  Starter
	out      dag.AnyType
}

func (e *elsewhere) body(ctx context.Context, d dag.DAG) (*dag.Node, error) {
	if e.starter == nil {
		return nil, stone.Fail(kind.Error, "%q has no starter: pass one to Elsewhere", e.name)
	}
	at := stone.In(ctx)
	input, err := tree.WriteInput(e.pipeline, d)
	if err != nil {
		return nil, err
	}
	c := Child{Pipeline: e.pipeline, Input: input, Grant: at.Grant(), Labels: map[string]string{Parent: at.RunID()}}
	if c.Limits, err = e.fixed(ctx); err != nil {
		return nil, err
	}
	r := runnerIn(ctx)
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %d %s %s", at.RunID(), at.Path(), record.Anew(ctx), e.pipeline.Fingerprint(), input)
	c.ID = childPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(sum.Sum(nil))[:26])
	s, err := e.paid(ctx, r, c)
	if err != nil {
		return nil, err
	}
	return dag.NewNode(dag.Spec{Type: e.out.Name(), Content: s.Result, Parents: d.Next(), Meta: map[string]string{"child": c.ID}})
}

// fixed returns the child's limits. Limits that depend on the run's account are recorded, so that they stay the same when the run
// is resumed.
func (e *elsewhere) fixed(ctx context.Context) (budget.Limits, error) {
	l, left := e.limits, budget.From(ctx).Left()
	if (l.Roundtrips != nil || left.Roundtrips == nil) && (l.Tokens != nil || left.Tokens == nil) && (l.USD != nil || left.USD == nil) {
		return l, nil
	}
	return stone.Step(ctx, "limits", l, func(context.Context, budget.Limits) (budget.Limits, error) {
		return budget.Limits{
			Roundtrips: cmp.Or(l.Roundtrips, left.Roundtrips), Tokens: cmp.Or(l.Tokens, left.Tokens), USD: cmp.Or(l.USD, left.USD), Latency: l.Latency,
		}, nil
	})
}

// settled is the content that is recorded for a step that waited for a child.
type settled struct {
	Child  string          `json:"child"`
	Result json.RawMessage `json:"result"`
	Usage  budget.Usage    `json:"usage"`
}

// paid waits for the child in a step that reserves the child's limits. The step's name is the child's ID, so the run's records
// always identify the child.
func (e *elsewhere) paid(ctx context.Context, r *runner, c Child) (settled, error) {
	at, account := stone.In(ctx), budget.From(ctx)
	before, err := r.step(ctx, body{at.Path(), c.ID})
	if err != nil {
		return settled{}, err
	}
	spent := before.Usage.Amount() // spending of the child before it is resumed
	quote := budget.Reserved(budget.Amount{
		Roundtrips: max(*cmp.Or(c.Limits.Roundtrips, new(1)), 0),
		Tokens:     max(*cmp.Or(c.Limits.Tokens, new(0))-spent.Tokens, 0), USD: max(*cmp.Or(c.Limits.USD, new(0.0))-spent.USD, 0),
	})
	goesOn := before.Possible.Attempts > 0
	var draw *budget.Draw
	if goesOn {
		draw = account.Adopt(at.RunID(), quote)
	} else if draw, err = account.Draw(ctx, at, c.ID, quote); err != nil {
		return settled{}, err
	}
	defer draw.Close()
	within := declared.Claim(record.WithChild(draw.Context(ctx), goesOn), budget.Quote{}) // shared budgets already count the child's cost
	s, err := stone.Step(within, c.ID, c.ID, func(ctx context.Context, _ string) (settled, error) {
		if err := draw.Begin(); err != nil {
			return settled{}, err
		}
		defer r.child(c.ID, e.starter)()
		state, err := e.wait(ctx, r, c)
		if err == nil {
			return e.settle(ctx, c, state, spent)
		}
		if ctx.Err() != nil && !r.ending() { // only this leaf was canceled: the run continues without it
			_ = e.starter.Cancel(context.WithoutCancel(ctx), c.ID)
		}
		return settled{}, err
	})
	if used, known := budget.CostOf(err); err == nil || known {
		if err == nil {
			used = s.Usage
		}
		draw.End(used)
	}
	return s, err
}

// settle returns the result of an ended child, and the child's spending minus spent, which has already been counted.
func (e *elsewhere) settle(ctx context.Context, c Child, s ChildState, spent budget.Amount) (settled, error) {
	u := s.Usage.Usage
	u.OutputTokens, u.USD, u.Estimated = u.OutputTokens+s.Usage.Possible.Tokens, u.USD+s.Usage.Possible.USD, u.Estimated || s.Usage.Possible.Attempts > 0
	if spent != (budget.Amount{}) {
		u = budget.Usage{OutputTokens: max(u.Amount().Tokens-spent.Tokens, 0), USD: math.Max(u.USD-spent.USD, 0), Estimated: u.Estimated}
	}
	if s.State == Done {
		if err := e.out.Schema().Validate(ctx, s.Result); err != nil {
			return settled{}, budget.Costly(stone.Fail(kind.BadContent, "child %s: its result is not a %q: %w", c.ID, e.out.Name(), err), u)
		}
		return settled{c.ID, s.Result, u}, nil
	}
	err := stone.Fail(kind.Error, "child %s is %s", c.ID, s.State)
	if f := s.Failure; f != nil {
		err = stone.Fail(kind.Kind(f.Kind), "child %s: %s", c.ID, f.Reason)
	}
	return settled{}, budget.Costly(err, u)
}

// wait starts the child, and waits until it has ended.
func (e *elsewhere) wait(ctx context.Context, r *runner, c Child) (ChildState, error) {
	ctx, stop := r.whileUndrained(ctx)
	defer stop()
	if err := e.starter.Start(ctx, c); err != nil {
		return ChildState{}, r.drained(ctx, err)
	}
	for {
		s, err := e.starter.Wait(ctx, c)
		switch {
		case err != nil:
			return s, r.drained(ctx, err)
		case s.State != Waiting:
			return s, nil
		}
		if err := e.ask(ctx, c, s.Questions); err != nil {
			return s, err
		}
	}
}

// ask asks a child's questions in the name of the run and passes the answers to the child. The error is kind.Waiting if a question
// has no answer yet.
func (e *elsewhere) ask(ctx context.Context, c Child, questions []Question) (waiting error) {
	for _, q := range questions {
		asked := ask.Question{Name: q.Name, Text: q.Text, Choices: q.Choices, Problem: q.Problem, Call: q.Call}
		if len(q.Schema) > 0 {
			s, err := schema.Parse(q.Schema)
			if err != nil {
				return err
			}
			asked.Schema = s
		}
		response, err := stone.Step(ctx, q.Path, q.Version, func(ctx context.Context, _ string) (string, error) { return stone.In(ctx).Ask(asked) })
		if err == nil {
			err = e.starter.Answer(ctx, c, q.Path, ask.Answer{Response: response, By: "run " + c.Labels[Parent]})
		}
		if errors.Is(err, kind.Waiting) {
			waiting = err
		} else if err != nil {
			return err
		}
	}
	return waiting
}
