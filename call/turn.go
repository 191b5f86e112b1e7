package call

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// Model returns a model that answers every request with a call described by spec. The call invokes capabilities, with their
// limits and breakers, according to the Spec's strategy, and applies the Spec's checks and judge. The Applicator thus selects the
// capability that answers each turn of an agent:
//
//	app := &call.Applicator{Registry: call.NewRegistry(small, large)}
//	fix := agent.New("fix", Patch, call.Model(app, call.Spec{
//		Dispatch: call.Dispatch{Candidates: []string{"model/small", "model/large"}},
//	}), agent.Config{…})
//
// The input of the call is the llm.Request, and its out the llm.Reply, both as JSON. Capabilities of call/model receive the whole
// conversation with tools and response format; any other capability may answer with {"text": "…"}. If the intent has an
// out-schema that is not for a text, models are told to answer in JSON that fits it, and checks see that JSON; another capability
// may answer with a value that fits. Dispatch.Repair adds the rejected answer to the context. Model sets the Applicator and the Input of the Spec; the Intent of the Spec defaults to
// "llm/turn".
//
// The call itself draws on the account in the context. The Budget of the Spec limits each request. In a run, the attempts are
// recorded steps below the body that makes the request; outside a run, each request is a separate run. A cascade streams an
// answer while it arrives. The other strategies stream the chosen answer once it is complete.
func Model(app *Applicator, spec Spec) llm.Model {
	spec.Applicator = app
	spec.Intent = cmp.Or(spec.Intent, terms.Turn)
	spec.Dispatch.AllowFailure = false
	return &turns{spec: spec}
}

type turns struct{ spec Spec }

// turnType is the node type of a Model's request.
var turnType = dag.NewType[JSON]("stone/turn")

// caller returns the call that answers the given request.
func (m *turns) caller(req *llm.Request, hear func() func(llm.Delta)) *caller {
	spec := m.spec
	spec.Input = dag.ReaderFunc(func(dag.DAG) (any, error) { return req, nil })
	return &caller{name: "model", produces: turnType, spec: spec, turn: req, hear: hear}
}

// Check implements llm.Checker. It returns an error if no capability can answer.
func (m *turns) Check() error {
	var errs []error
	for _, f := range stone.Findings(m.caller(nil, nil).check()).Errors() {
		errs = append(errs, errors.New(f.Message))
	}
	return errors.Join(errs...)
}

// CheckGrant returns a finding for each effect that the calls need and the grant lacks.
func (m *turns) CheckGrant(grant []string) []stone.Finding {
	return m.caller(nil, nil).checkGrant(grant)
}

// Unpriced returns the names of the models without a known price that the calls may use.
func (m *turns) Unpriced(ctx context.Context) []string { return m.caller(nil, nil).unpriced(ctx) }

// Most returns the maximum cost of the call for the given request; see llm.Most.
func (m *turns) Most(ctx context.Context, req *llm.Request) budget.Bound {
	return m.caller(req, nil).bound(ctx)
}

// Info returns the model's description. Its name is the intent of the calls.
func (m *turns) Info() llm.Info { return llm.Info{Provider: "call", Model: m.spec.Intent, Pays: true} }

// Stream implements llm.Model.
func (m *turns) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		t := &turnStream{yield: yield, heard: make(chan heard), ctx: ctx, start: time.Now()}
		t.live = m.spec.Dispatch.Strategy == "" || m.spec.Dispatch.Strategy == Cascade
		answer, gone := make(chan answered, 1), make(chan struct{})
		go func() {
			defer close(gone)
			answer <- m.ask(ctx, req, t.listen)
		}()
		t.run(answer)
		cancel()
		<-gone
	}
}

// An answered call holds the node of its answer, or an error.
type answered struct {
	node *dag.Node
	err  error
}

// ask makes the call, in the run of ctx or in a separate run.
func (m *turns) ask(ctx context.Context, req *llm.Request, hear func() func(llm.Delta)) answered {
	leaf, in := m.caller(req, hear).leaf(), stone.In(ctx)
	if in.Path() == "" {
		result, err := stone.Run(ctx, leaf, stone.Config{})
		return answered{result.Node, err}
	}
	d := in.RunDynamic(leaf, dag.DAG{}, nil)
	if d.InFlight() {
		return answered{err: d.Cause()}
	}
	n, err := d.Nearest(turnType.Name())
	return answered{n, err}
}

// A turnStream combines the streams of all capabilities that a call invokes into one stream.
type turnStream struct {
	ctx     context.Context
	yield   func(llm.Delta, error) bool
	heard   chan heard
	live    bool // whether there is one invocation at a time, whose deltas are yielded
	start   time.Time
	latest  atomic.Int64 // the number of the latest invocation
	started bool
	said    bool       // whether a piece was yielded and has not been retracted by a Restart
	reply   *llm.Reply // the last answer that was received completely
}

// heard is a delta together with the number of its invocation.
type heard struct {
	invocation int64
	delta      llm.Delta
}

// listen returns the function that the next invocation calls for each delta. An abandoned invocation may call it after the stream
// has ended. Before the next invocation starts, the consumer is told that the earlier answer is void, and can stop the stream.
func (t *turnStream) listen() func(llm.Delta) {
	n := t.latest.Add(1)
	hear := func(d llm.Delta) {
		select {
		case t.heard <- heard{n, d}:
		case <-t.ctx.Done():
		}
	}
	if n > 1 && t.live {
		hear(llm.Delta{Kind: llm.Start})
		hear(llm.Delta{Kind: llm.Progress}) // received only after the consumer has handled the Start
	}
	return hear
}

// run yields deltas until the call is answered or the consumer stops.
func (t *turnStream) run(answer <-chan answered) {
	progress := time.NewTicker(llm.ProgressInterval)
	defer progress.Stop()
	for {
		more := true
		select {
		case h := <-t.heard:
			more = h.invocation != t.latest.Load() || t.hear(h.delta)
		case <-progress.C:
			more = t.yield(llm.Delta{Kind: llm.Progress, Elapsed: time.Since(t.start)}, nil)
		case a := <-answer:
			t.end(a)
			return
		}
		if !more {
			return
		}
	}
}

// hear yields a delta of the latest invocation. The first delta of an invocation is a Start.
func (t *turnStream) hear(d llm.Delta) bool {
	if !t.live && d.Kind != llm.Done {
		return true
	}
	switch d.Kind {
	case llm.Start:
		if t.said && !t.again(errors.New("another attempt")) {
			return false
		}
		if t.reply = nil; t.started {
			return true
		}
		t.started = true
	case llm.Progress:
		return true // run yields its own Done
	case llm.Restart:
		return t.again(d.Err)
	case llm.Done:
		t.reply = d.Reply
		return true
	default:
		t.said = true
	}
	return t.yield(d, nil)
}

// again retracts the yielded deltas. The call accounts for their cost.
func (t *turnStream) again(why error) bool {
	t.said = false
	return t.yield(llm.Delta{Kind: llm.Restart, Err: why, Reply: &llm.Reply{Spent: &budget.Usage{}}}, nil)
}

// end yields the answer of the call.
func (t *turnStream) end(a answered) {
	if a.err != nil {
		t.fail(a.err)
		return
	}
	reply, err := readTurn(a.node.Content())
	if err != nil {
		t.fail(err)
		return
	}
	if t.said && !t.same(a.node.Content()) && !t.again(errors.New("the answer was replaced")) {
		return
	}
	if !t.said && !t.pass(reply) {
		return
	}
	reply.Spent = &budget.Usage{}
	if rec := RecordOf(a.node); rec != nil {
		reply.Spent = &rec.Usage.Usage
	}
	t.yield(llm.Delta{Kind: llm.Done, Reply: reply}, nil)
}

// pass yields the deltas of a reply that was not streamed.
func (t *turnStream) pass(reply *llm.Reply) bool {
	if !t.started && !t.yield(llm.Delta{Kind: llm.Start, Reply: &llm.Reply{RequestID: reply.RequestID}}, nil) {
		return false
	}
	for _, d := range reply.Deltas() {
		if !t.yield(d, nil) {
			return false
		}
	}
	return true
}

// same reports whether the answer equals the streamed one.
func (t *turnStream) same(out JSON) bool {
	said, err := canon.Append(nil, t.reply)
	return err == nil && t.reply != nil && bytes.Equal(said, out)
}

func (t *turnStream) fail(err error) {
	if t.ctx.Err() != nil {
		err = context.Cause(t.ctx)
	}
	reply := llm.Reply{}
	if t.reply != nil {
		reply = *t.reply
		if !t.said && !t.pass(&reply) {
			return
		}
	} else if t.said && !t.again(err) {
		return
	}
	reply.Spent = &budget.Usage{}
	if failed, ok := errors.AsType[*Error](err); ok && failed.Record != nil {
		reply.Spent = &failed.Record.Usage.Usage
	}
	t.yield(llm.Delta{Reply: &reply}, err)
}

// readTurn reads the out of a call as the reply of a model.
func readTurn(out JSON) (*llm.Reply, error) {
	reply := &llm.Reply{}
	if err := json.Unmarshal(out, reply); err != nil {
		return nil, &Error{Type: reasons.SchemaInvalid, Where: "result", Message: strings.TrimSpace(fmt.Sprintf("the answer is not a model's reply, such as {\"text\": \"…\"}: %v", err))}
	}
	for i, c := range reply.ToolCalls {
		if string(c.Input) == "null" { // the input was cut off
			reply.ToolCalls[i].Input = nil
		}
	}
	return reply, reply.CheckContent()
}

// fits checks an out with a schema and returns the answer that further checks see. In a turn, the answer is the JSON in the text of
// the reply, unless the schema is for a text. A reply with tool calls is not an answer yet. An out that is not a reply but fits
// the schema becomes the text of a reply.
func (l *lane) fits(s *schema.Schema, o *outcome) (answer JSON, invalid error) {
	invalid = s.Validate(l.ctx, o.out)
	if l.turn == nil {
		return o.out, invalid
	}
	reply, err := readTurn(o.out)
	switch {
	case err != nil && invalid == nil:
		text, _ := textOf(o.out)
		answer, o.out = o.out, textOut(text)
		return answer, nil
	case err != nil:
		return o.out, invalid
	case len(reply.ToolCalls) > 0:
		return o.out, nil
	case structured.SaysText(s):
		if invalid != nil {
			invalid = s.Validate(l.ctx, textOut(reply.Text))
		}
		return o.out, invalid
	case reply.Refused():
		return o.out, fmt.Errorf("the model refused: %s", cmp.Or(reply.Refusal, "stop reason "+reply.StopReason))
	}
	data, misfit := structured.Of(cmp.Or(l.spec.Requires.OutSchema, l.spec.Intent), s).Read(l.ctx, reply)
	if misfit != nil {
		return o.out, misfit.Err
	}
	if answer, err = canon.Append(nil, json.RawMessage(data)); err != nil {
		return o.out, err
	}
	if text := string(data); text != reply.Text { // such as a text in a code fence
		reply.Text = text
		if o.out, err = canon.Append(nil, reply); err != nil {
			return o.out, err
		}
	}
	return answer, nil
}
