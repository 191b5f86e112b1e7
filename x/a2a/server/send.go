package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/internal/inside"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/serve/api"
)

// accept handles a message, which either starts a run or answers a question of a run, and returns the run.
func (a *agent) accept(ctx context.Context, req *sdk.SendMessageRequest) (run api.Run, err error) {
	switch {
	case req == nil || req.Message == nil:
		return run, invalid("the request has no message")
	case req.Message.ID == "":
		return run, invalid("the message has no id: set messageId")
	case len(req.Message.Parts) == 0:
		return run, invalid("the message has no parts")
	case req.Message.Role != sdk.MessageRoleUser:
		return run, invalid(fmt.Sprintf("the message has the role %q: want %q", req.Message.Role, sdk.MessageRoleUser))
	}
	var push *sdk.PushConfig
	if req.Config != nil {
		push = req.Config.PushConfig
	}
	if push != nil {
		if err := a.push.Check(receiver(push)); err != nil {
			return run, failure(err)
		}
	}
	if req.Message.TaskID != "" {
		run, err = a.answer(ctx, req.Message)
	} else {
		run, err = a.start(ctx, req)
	}
	if err == nil && push != nil {
		err = failure(a.push.Save(ctx, callerOf(ctx).who, run.ID, receiver(push)))
	}
	return run, err
}

// start starts a run for a message and returns it. If the same message has already started a run, start returns this run.
func (a *agent) start(ctx context.Context, req *sdk.SendMessageRequest) (run api.Run, err error) {
	m, c := req.Message, callerOf(ctx)
	s, err := a.skillFor(req)
	if err != nil {
		return run, err
	}
	input, err := s.input(m)
	if err != nil {
		return run, err
	}
	key := digest(c, m, s.Name)
	id, group := "task-"+key, cmp.Or(m.ContextID, "context-"+key)
	if run, err = c.Result(ctx, id, 0); err == nil {
		return run, nil // returned even if the context has changed since
	} else if p, ok := errors.AsType[*api.Problem](err); !ok || p.Type != problems.NotFound {
		return run, failure(err)
	}
	after := ""
	if m.ContextID != "" && s.Continues {
		if after, err = c.Last(ctx, s.Name, contextLabel, group); err != nil {
			return run, failure(err)
		}
	}
	// Continue even if the client is gone: it may send the message again and find the task. Other clients may watch the task at
	// any time.
	ctx = turn.Listen(context.WithoutCancel(ctx), func([]turn.Part) {})
	run, err = c.Put(ctx, id, api.Start{Pipeline: s.Name, Input: input, After: after, Labels: map[string]string{contextLabel: group}})
	if again, found := c.Result(ctx, id, 0); err != nil && found == nil { // the message was sent twice at the same time, and the other request started the run
		return again, nil
	}
	return run, failure(err)
}

// answer answers the question to which a message refers.
func (a *agent) answer(ctx context.Context, m *sdk.Message) (run api.Run, err error) {
	if run, err = a.known(ctx, m.TaskID); err != nil {
		return run, err
	}
	if m.ContextID != "" && m.ContextID != infoOf(run).ContextID {
		return run, invalid(fmt.Sprintf("the task %s belongs to another context than the message", m.TaskID))
	}
	c := callerOf(ctx)
	asked, err := c.Asked(ctx, run.ID)
	if err != nil {
		return run, failure(err)
	}
	for _, q := range asked {
		if turn.In(q.By, m.ID) { // the message was sent again
			return run, nil
		}
	}
	if run.Over() {
		return run, sdk.NewError(sdk.ErrUnsupportedOperation, fmt.Sprintf("the task is %s: send the message without a task, in the context %s", run.State, infoOf(run).ContextID))
	}
	q, open := oldest(asked)
	if path := named(m.Metadata, "question"); path != "" {
		open = false
		for _, one := range asked {
			if one.Path == path && one.Answered.IsZero() {
				q, open = one, true
			}
		}
	}
	if !open {
		return run, sdk.NewError(sdk.ErrUnsupportedOperation, "the task asks no such question: wait until it is input-required")
	}
	text, data, files, err := said(m)
	switch {
	case err != nil:
		return run, err
	case len(files) > 0:
		return run, sdk.NewError(sdk.ErrUnsupportedContentType, "an answer to a question has no files: want text or data")
	}
	if data != nil && text == "" {
		text = string(data)
	}
	if text == "" {
		return run, invalid("the answer is empty")
	}
	who := c.who
	who.By = turn.By(cmp.Or(who.By, who.Name, "an A2A client"), m.ID)
	given := api.Answer{Question: q.Path, Response: text, Version: cmp.Or(named(m.Metadata, "version"), q.Version)}
	if err := inside.As(a.of, who).Answer(context.WithoutCancel(ctx), run.ID, given); err != nil {
		return run, failure(err)
	}
	run, err = c.Run(ctx, run.ID)
	return run, failure(err)
}

// await waits until a run has stopped, and returns the run with its result.
func await(ctx context.Context, c caller, run api.Run) (api.Run, error) {
	for {
		var err error
		if run, err = c.Result(ctx, run.ID, time.Minute); err != nil {
			return run, failure(err)
		}
		if stopped(run) {
			return run, nil
		}
		if ctx.Err() != nil {
			return run, context.Cause(ctx)
		}
	}
}

// SendMessage implements a2asrv.RequestHandler.
func (a *agent) SendMessage(ctx context.Context, req *sdk.SendMessageRequest) (sdk.SendMessageResult, error) {
	run, err := a.accept(ctx, req)
	if err != nil {
		return nil, err
	}
	c := callerOf(ctx)
	if req.Config != nil && req.Config.ReturnImmediately {
		run, err = c.Result(ctx, run.ID, 0)
	} else {
		run, err = await(ctx, c, run)
	}
	if err != nil {
		return nil, failure(err)
	}
	var most *int
	if req.Config != nil {
		most = req.Config.HistoryLength
	}
	return task(ctx, c, run, most)
}
