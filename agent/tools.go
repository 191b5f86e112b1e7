package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// maxInput is the maximum size of a call's arguments, in bytes.
const maxInput = 1 << 20

// maxParallel limits how many of a turn's calls run at the same time.
const maxParallel = 16

// outcome is the record of a tool call.
type outcome struct {
	Text      string          `json:"text"`
	Media     []*llm.Media    `json:"media,omitempty"`
	Meta      json.RawMessage `json:"meta,omitempty"`
	Failed    bool            `json:"failed,omitempty"`
	Recommend *Recommendation `json:"recommend,omitempty"`
	Kept      *handle         `json:"kept,omitempty"` // the handle of the whole text
	Ran       dag.Delta       `json:"ran,omitempty"`  // the nodes added by the call: the nodes of its pipeline, and its kept result
}

// dispatch runs the calls of the reply, in order unless they may run concurrently, and adds their results and recommendations in
// order.
func (r *run) dispatch(ctx context.Context, c *Context) error {
	calls := c.Reply.ToolCalls
	if r.base.Len() == 0 {
		var err error
		if r.base, err = dag.Origin(r.dag); err != nil {
			return err
		}
	}
	outcomes := make([]outcome, len(calls))
	for from := 0; from < len(calls); {
		to := from + 1
		for parallel(c.Tools, calls[from]) && to < len(calls) && parallel(c.Tools, calls[to]) {
			to++
		}
		var err error
		if to == from+1 {
			outcomes[from], err = r.call(ctx, c, from)
		} else {
			err = r.together(ctx, c, outcomes, from, to, parallel)
		}
		if errors.Is(err, kind.Waiting) {
			err = errors.Join(err, r.together(ctx, c, outcomes, to, len(calls), byClient))
		}
		if err != nil {
			return err
		}
		from = to
	}
	r.returned(ctx, c.Tools, []llm.Message{{ToolCalls: calls}})
	c.Messages = slices.Grow(c.Messages, len(calls))
	c.Advice = slices.Grow(slices.Clip(c.Advice), len(calls))
	for i, call := range calls {
		if ran := outcomes[i].Ran; len(ran) > 0 {
			lane, err := ran.Apply(r.base)
			if err != nil {
				return err
			}
			r.lanes = append(r.lanes, lane)
		}
		m, err := result(call, outcomes[i])
		if err != nil {
			return err
		}
		c.Messages = append(c.Messages, m)
		c.Advice = append(c.Advice, outcomes[i].advice(call.Name))
	}
	return nil
}

func result(call llm.ToolCall, o outcome) (llm.Message, error) {
	m := llm.ToolResult(call.ID, o.Text)
	for _, media := range o.Media {
		m.Content = append(m.Content, llm.Part{Media: media})
	}
	m.IsError = o.Failed
	if o.Meta != nil {
		m.Metadata = map[string]json.RawMessage{metaKey: o.Meta}
	}
	if o.Kept == nil {
		return m, nil
	}
	return noted(m, *o.Kept)
}

func (o *outcome) advice(tool string) Recommendation {
	var advice Recommendation
	if o.Recommend != nil {
		advice = *o.Recommend
	}
	advice.Action, advice.Source = cmp.Or(advice.Action, Loop), cmp.Or(advice.Source, tool)
	advice.Failed = o.Failed
	return advice
}

// find returns the tool with the given name, or nil if tools does not contain it.
func find(tools []Tool, name string) *Tool {
	for i := range tools {
		if tools[i].Name == name {
			return &tools[i]
		}
	}
	return nil
}

func parallel(tools []Tool, call llm.ToolCall) bool {
	t := find(tools, call.Name)
	return t != nil && t.Parallel
}

// byClient reports whether the run's client executes a call.
func byClient(tools []Tool, call llm.ToolCall) bool {
	t := find(tools, call.Name)
	return t != nil && t.Client
}

// together runs, concurrently, all calls in the range [from, to) that the function such selects.
func (r *run) together(ctx context.Context, c *Context, outcomes []outcome, from, to int, such func([]Tool, llm.ToolCall) bool) error {
	var wait sync.WaitGroup
	errs := make([]error, to-from)
	slots := make(chan struct{}, maxParallel)
	for i := from; i < to; i++ {
		if !such(c.Tools, c.Reply.ToolCalls[i]) {
			continue
		}
		slots <- struct{}{}
		errs[i-from] = failure(kind.Panic, nil, "the tool %q called runtime.Goexit", c.Reply.ToolCalls[i].Name)
		wait.Go(func() {
			defer func() { <-slots }()
			outcomes[i], errs[i-from] = r.call(ctx, c, i)
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// call runs one call. Its address consists of the turn and the position, because the call ids of providers are not unique.
func (r *run) call(ctx context.Context, c *Context, i int) (outcome, error) {
	j := &job{run: r, context: c, turn: c.Turn, position: i + 1, call: c.Reply.ToolCalls[i]}
	j.tool = find(c.Tools, j.call.Name)
	if r.info {
		j.start = time.Now()
	}
	j.offered = c.Tools
	o, err := stone.Step(ctx, address.ToolStep(c.Turn, i+1), toolInput{j.call.Name, j.call.Input}, j.do)
	if o.Kept != nil && !j.done {
		r.room.Add(-int64(o.Kept.Bytes))
	}
	return o, err
}

// toolInput is the step input of a tool call. It omits the provider's call id.
type toolInput struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// job is a running call.
type job struct {
	*run
	context        *Context
	turn, position int
	call           llm.ToolCall
	tool           *Tool // nil if there is no such tool
	offered        []Tool
	start          time.Time
	done           bool    // whether the call was made now rather than replayed
	end            dag.DAG // the DAG with the call's nodes; empty if the call added none
}

// refuse returns the reason why a call must not run, as text for the model, or "" if the call can run.
func (r *run) refuse(ctx context.Context, tools []Tool, j *job) (string, error) {
	tool, call := j.tool, j.call
	switch most := r.cfg.MaxCalls; {
	case j.position > most:
		return fmt.Sprintf("This call was not run: a turn may have at most %d calls. Call the tool again in the next turn, if it is still needed.", most), nil
	case tool == nil:
		return unknown(call.Name, tools), nil
	case call.Input == nil && (json.Valid([]byte(call.InputText)) || strings.HasSuffix(call.InputText, " bytes)")):
		return fmt.Sprintf("The arguments of this call cannot be kept, so it was not run. Call the tool again: name each property once, in at most %d bytes.", maxInput), nil
	case call.Input == nil:
		return "The arguments of this call were cut off, so it was not run. Call the tool again, with shorter arguments.", nil
	case tool.Run == nil:
		return "", failure(kind.Error, nil, "the tool %q has no Run function: set one", tool.Name)
	}
	s, err := r.schemas.of(tool.Schema)
	if err != nil {
		return "", failure(kind.Error, err, "the schema of the tool %q: %v", tool.Name, err)
	}
	err = s.Validate(ctx, call.Input)
	if invalid, ok := errors.AsType[*schema.ValidationError](err); ok {
		if j.call.Input = meant(ctx, s, call.Input); j.call.Input != nil {
			return "", nil
		}
		j.call.Input = call.Input
		return "The arguments do not fit the schema of the tool, so it was not run:\n" + invalid.Detail(), nil
	}
	return "", err
}

// meant returns the arguments that a model probably meant and that fit the schema, or nil. It converts values written as text,
// drops optional properties that are null, and unwraps arguments that are wrapped in a single member.
func meant(ctx context.Context, s *schema.Schema, input json.RawMessage) json.RawMessage {
	var whole map[string]json.RawMessage
	if restored := s.Restore(ctx, input); s.Validate(ctx, restored) == nil {
		return restored
	} else if json.Unmarshal(restored, &whole) != nil || len(whole) != 1 {
		return nil
	}
	for _, name := range []string{"arguments", "parameters", "input"} {
		if inner, ok := whole[name]; ok && !slices.Contains(s.Properties(), name) {
			if restored := s.Restore(ctx, inner); s.Validate(ctx, restored) == nil {
				return restored
			}
		}
	}
	return nil
}

func unknown(name string, tools []Tool) string {
	if len(tools) == 0 {
		return fmt.Sprintf("There is no tool %q, and no other. Answer without tools.", name)
	}
	text := fmt.Sprintf("There is no tool %q.", name)
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
		if alike(name, t.Name) {
			text += fmt.Sprintf(" Did you mean %q?", t.Name)
		}
	}
	return text + " The tools are: " + strings.Join(names, ", ") + "."
}

// alike reports whether a name probably means a tool: models change case and separators, and add prefixes.
func alike(name, tool string) bool {
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r == '_' || r == '-' || r == '.' || r == ' ' || r == '/' || r == ':' {
				return -1
			}
			return r
		}, strings.ToLower(s))
	}
	a, b := letters(name), letters(tool)
	return a != "" && b != "" && (strings.Contains(a, b) || strings.Contains(b, a))
}

// do runs the tool and sets the call's outcome. If the tool does not run, the outcome tells the model why. Errors are passed to
// the model, except when the run ends or a question is waiting for its answer: a resumed run then repeats the call.
func (j *job) do(ctx context.Context, _ toolInput) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	j.done = true
	refusal, err := j.refuse(ctx, j.offered, j)
	if err == nil && refusal == "" {
		ctx, refusal, err = j.admit(ctx)
	}
	if err != nil || refusal != "" {
		o := outcome{Text: refusal, Failed: true}
		j.dispatched(o)
		return o, err
	}
	if err := past.Ask(ctx, j.tool.Effects, "tool", j.call.Name, j.call.Input); err != nil {
		return outcome{}, err
	}
	if j.debug {
		j.place.Send(event.ToolStarted{ToolCall: j.told()})
	}
	res, err := j.guarded(context.WithValue(ctx, jobKey{}, j))
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return outcome{}, ctx.Err()
	case errors.Is(err, kind.Waiting) || errors.Is(err, kind.NoFrontend) || fault.EndsRun(err):
		return outcome{}, err
	}
	o := outcome{Recommend: res.Recommend, Failed: err != nil}
	text := res.Text
	if err != nil {
		text = err.Error()
	}
	if err := j.fit(ctx, &o, text); err != nil {
		return o, err
	}
	if !o.Failed {
		j.show(&o, res.Media)
	}
	if j.end.Len() > 0 {
		// The call is recorded with its nodes, because a replayed call does not make them again.
		if o.Ran, err = j.base.Delta(j.end); err != nil {
			return o, err
		}
	}
	if res.Meta != nil {
		if o.Meta, err = json.Marshal(res.Meta); err != nil {
			return o, failure(kind.BadContent, err, "the tool %q returned a Meta that JSON cannot represent: %v", j.tool.Name, err)
		}
	}
	j.dispatched(o)
	return o, nil
}

// show adds a result's media to the outcome. The outcome tells the model which media cannot be shown and why. They are left out,
// because a request with them would be rejected.
func (j *job) show(o *outcome, media []*llm.Media) {
	size := 0
	for _, m := range media {
		if m == nil {
			continue
		}
		err := llm.CheckMedia(j.model, llm.RoleTool, m)
		if size += len(m.Data); err == nil && size > llm.MaxMedia {
			err = errors.New("the result has too much media")
		}
		if err != nil {
			if o.Text != "" {
				o.Text += "\n"
			}
			o.Text += fmt.Sprintf("[%s: not shown: %v]", m, err)
			continue
		}
		o.Media = append(o.Media, m)
	}
}

func (j *job) guarded(ctx context.Context) (res Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			j.place.Send(event.ToolPanicked{Tool: j.tool.Name, Error: fmt.Sprint(p), Stack: string(stack)})
			err = fmt.Errorf("the tool %q panicked: %v", j.tool.Name, p)
		}
	}()
	limit := j.tool.Timeout
	if limit <= 0 {
		return j.tool.Run(ctx, j.call.Input)
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res, err = j.tool.Run(within, j.call.Input)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("the tool %q was stopped at its time limit of %v: %w", j.tool.Name, limit, err)
	}
	return res, err
}

// schemas compiles each tool's schema once in the agent's lifetime.
type schemas struct {
	mu    sync.Mutex
	known map[string]*schema.Schema
}

// maxSchemas limits the number of compiled schemas, for agents that make new tools in every turn.
const maxSchemas = 1024

func (s *schemas) of(raw json.RawMessage) (*schema.Schema, error) {
	if len(raw) == 0 {
		return nil, nil // any input fits
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.known[string(raw)]; ok {
		return known, nil
	}
	parsed, _, err := schema.ParseForeign(raw) // Validate reports unchecked keywords
	if err != nil {
		return nil, err
	}
	if s.known == nil || len(s.known) >= maxSchemas {
		s.known = map[string]*schema.Schema{}
	}
	s.known[string(raw)] = parsed
	return parsed, nil
}
