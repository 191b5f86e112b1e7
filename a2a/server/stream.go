package server

import (
	"context"
	"iter"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/internal/inside"
	"github.com/stonelayer/stone/serve/api"
)

// SendStreamingMessage implements a2asrv.RequestHandler.
func (a *agent) SendStreamingMessage(ctx context.Context, req *sdk.SendMessageRequest) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		run, err := a.accept(ctx, req)
		if err == nil {
			run, err = callerOf(ctx).Result(ctx, run.ID, 0)
		}
		if err != nil {
			yield(nil, failure(err))
			return
		}
		stream(ctx, callerOf(ctx), run, yield)
	}
}

// SubscribeToTask implements a2asrv.RequestHandler.
func (a *agent) SubscribeToTask(ctx context.Context, req *sdk.SubscribeToTaskRequest) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		run, err := a.known(ctx, req.ID)
		if err == nil && run.Over() {
			err = sdk.NewError(sdk.ErrUnsupportedOperation, "the task is "+string(run.State)+": get it")
		}
		if err != nil {
			yield(nil, err)
			return
		}
		stream(ctx, callerOf(ctx), run, yield)
	}
}

// stream yields a task, what its models write, and how it stops.
func stream(ctx context.Context, c caller, run api.Run, yield func(sdk.Event, error) bool) {
	first, err := task(ctx, c, run, nil)
	if !yield(first, err) || err != nil || stopped(run) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type end struct {
		run api.Run
		err error
	}
	ended, said, heard := make(chan end, 1), make(chan []api.Piece), make(chan struct{})
	go func() {
		run, err := await(ctx, c, run)
		ended <- end{run, err}
	}()
	go func() {
		defer close(heard)
		// Without the pieces the stream still has the end.
		_ = c.Follow(ctx, run.ID, true, func(e api.Event) {
			if e.Said == nil {
				return
			}
			select {
			case said <- e.Said:
			case <-ctx.Done():
			}
		})
	}()
	defer func() { cancel(); <-heard }()
	d := draft{of: infoOf(run)}
	for {
		select {
		case pieces := <-said:
			if e := d.add(pieces); e != nil && !yield(e, nil) {
				return
			}
		case last := <-ended:
			if last.err != nil {
				yield(nil, last.err)
				return
			}
			finish(ctx, c, last.run, &d, yield)
			return
		}
	}
}

// finish yields the result of a run that has stopped, and its status.
func finish(ctx context.Context, c caller, run api.Run, d *draft, yield func(sdk.Event, error) bool) {
	t, err := task(ctx, c, run, nil)
	if err != nil {
		yield(nil, err)
		return
	}
	for _, artifact := range t.Artifacts {
		if !yield(d.end(artifact), nil) {
			return
		}
	}
	yield(&sdk.TaskStatusUpdateEvent{TaskID: d.of.TaskID, ContextID: d.of.ContextID, Status: t.Status, Metadata: t.Metadata}, nil)
}

// A draft is what a client was told of the result before it was there.
type draft struct {
	of   sdk.TaskInfo
	from string // the step that writes it
	text string
}

// add returns the event for what models have written since, or nil. Of several that write at once, one
// is told.
func (d *draft) add(pieces []api.Piece) sdk.Event {
	if len(pieces) == 0 {
		return nil // it is complete or taken back, which the next event says
	}
	now := pieces[0]
	for _, p := range pieces {
		if p.Path == d.from {
			now = p
		}
	}
	more, follows := "", false
	if now.Path == d.from {
		more, follows = inside.After(d.text, now.Text)
	}
	d.from = now.Path
	if !follows {
		d.text = now.Text
		return d.event(now.Text, false)
	}
	if more == "" {
		return nil
	}
	d.text += more
	return d.event(more, true)
}

func (d *draft) event(text string, add bool) *sdk.TaskArtifactUpdateEvent {
	return &sdk.TaskArtifactUpdateEvent{TaskID: d.of.TaskID, ContextID: d.of.ContextID, Append: add, Artifact: &sdk.Artifact{ID: resultID, Parts: sdk.ContentParts{sdk.NewTextPart(text)}}}
}

// end returns the event for the result: the text after the draft, or the whole result if it differs.
func (d *draft) end(result *sdk.Artifact) *sdk.TaskArtifactUpdateEvent {
	e := &sdk.TaskArtifactUpdateEvent{TaskID: d.of.TaskID, ContextID: d.of.ContextID, Artifact: result, LastChunk: true}
	if text := result.Parts[0].Text(); d.text != "" && strings.HasPrefix(text, d.text) {
		copied := *result
		copied.Parts = sdk.ContentParts{sdk.NewTextPart(text[len(d.text):])}
		e.Artifact, e.Append = &copied, true
	}
	return e
}
