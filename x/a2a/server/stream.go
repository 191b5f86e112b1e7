package server

import (
	"context"
	"iter"
	"slices"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/internal/turn"
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

// stream yields the events of a run: the task, the text that models are writing, and the result with the final status.
func stream(ctx context.Context, c caller, run api.Run, yield func(sdk.Event, error) bool) {
	first, err := task(ctx, c, run, nil)
	if !yield(first, err) || err != nil || stopped(run) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := draft{of: infoOf(run)}
	run, err = await(turn.Listen(ctx, func(parts []turn.Part) {
		if e := d.add(parts); e != nil && ctx.Err() == nil && !yield(e, nil) {
			cancel()
		}
	}), c, run)
	switch {
	case ctx.Err() != nil: // nobody is listening any more
	case err != nil:
		yield(nil, err)
	default:
		finish(ctx, c, run, &d, yield)
	}
}

// finish yields the result and the status of a run that has stopped.
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

// A draft is the part of a result that a client has already received.
type draft struct {
	of   sdk.TaskInfo
	text string
}

// add returns an event with the new text of the run, or nil if there is none. The text comes from the newest answer.
func (d *draft) add(parts []turn.Part) sdk.Event {
	for _, p := range slices.Backward(parts) {
		if p.Kind != turn.Text || p.State == turn.Void {
			continue
		}
		more, follows := strings.CutPrefix(p.Text, d.text)
		if more == "" {
			return nil
		}
		follows = follows && d.text != ""
		d.text = p.Text
		return d.event(more, follows)
	}
	return nil
}

func (d *draft) event(text string, add bool) *sdk.TaskArtifactUpdateEvent {
	return &sdk.TaskArtifactUpdateEvent{TaskID: d.of.TaskID, ContextID: d.of.ContextID, Append: add, Artifact: &sdk.Artifact{ID: resultID, Parts: sdk.ContentParts{sdk.NewTextPart(text)}}}
}

// end returns the event for the result. It contains the text that follows the draft, or the whole result if the result does not
// start with the draft.
func (d *draft) end(result *sdk.Artifact) *sdk.TaskArtifactUpdateEvent {
	e := &sdk.TaskArtifactUpdateEvent{TaskID: d.of.TaskID, ContextID: d.of.ContextID, Artifact: result, LastChunk: true}
	if text := result.Parts[0].Text(); d.text != "" && strings.HasPrefix(text, d.text) {
		copied := *result
		copied.Parts = sdk.ContentParts{sdk.NewTextPart(text[len(d.text):])}
		e.Artifact, e.Append = &copied, true
	}
	return e
}
