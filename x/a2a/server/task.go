package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/internal/inside"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/x/a2a/internal/parts"
)

// contextLabel is the label that contains the context of a run.
const contextLabel = "a2a-context"

// resultID is the id of the artifact that contains the result.
const resultID = "result"

// states maps the states of runs to the states of tasks.
var states = map[journal.State]sdk.TaskState{
	journal.Running: sdk.TaskStateWorking, journal.Drained: sdk.TaskStateWorking, journal.Interrupted: sdk.TaskStateWorking, journal.Answered: sdk.TaskStateWorking,
	journal.Waiting: sdk.TaskStateInputRequired, journal.Done: sdk.TaskStateCompleted, journal.Canceled: sdk.TaskStateCanceled,
	journal.Failed: sdk.TaskStateFailed, journal.Refused: sdk.TaskStateFailed, journal.Damaged: sdk.TaskStateFailed,
}

func stopped(run api.Run) bool { return run.Over() || run.State == journal.Waiting }

func infoOf(run api.Run) sdk.TaskInfo {
	return sdk.TaskInfo{TaskID: sdk.TaskID(run.ID), ContextID: cmp.Or(run.Labels[contextLabel], run.ID)}
}

// task returns the task that describes a run and its result. If most is not nil, the history contains only the newest *most
// messages.
func task(ctx context.Context, c caller, run api.Run, most *int) (*sdk.Task, error) {
	of := infoOf(run)
	t := &sdk.Task{ID: of.TaskID, ContextID: of.ContextID, Metadata: map[string]any{"skill": run.Pipeline}}
	asked, err := c.Asked(ctx, run.ID)
	if err != nil {
		return nil, failure(err)
	}
	t.Status = status(run, asked)
	for _, q := range asked {
		if !q.Answered.IsZero() {
			answer := &sdk.Message{ID: cmp.Or(turn.MessageOf(q.By), q.Version+"-answer"), Role: sdk.MessageRoleUser, TaskID: of.TaskID, ContextID: of.ContextID, Parts: sdk.ContentParts{sdk.NewTextPart(q.Response)}}
			t.History = append(t.History, question(of, q), answer)
		}
	}
	if most != nil && *most < len(t.History) {
		t.History = t.History[len(t.History)-max(*most, 0):]
	}
	if run.Result != nil {
		t.Artifacts = []*sdk.Artifact{{ID: resultID, Name: run.Result.Type, Parts: c.parts(run.Pipeline, run.Result)}}
	}
	return t, nil
}

// status returns the task status of a run with the given questions.
func status(run api.Run, asked []api.Question) sdk.TaskStatus {
	when := run.Started
	if stopped(run) && !run.Ended.IsZero() {
		when = run.Ended
	}
	s := sdk.TaskStatus{State: cmp.Or(states[run.State], sdk.TaskStateWorking), Timestamp: &when}
	of := infoOf(run)
	say := func(text string) {
		s.Message = &sdk.Message{ID: run.ID + "-" + string(run.State), Role: sdk.MessageRoleAgent, TaskID: of.TaskID, ContextID: of.ContextID, Parts: sdk.ContentParts{sdk.NewTextPart(text)}}
	}
	switch q, open := oldest(asked); {
	case s.State == sdk.TaskStateInputRequired && open:
		s.Message = question(of, q)
	case s.State == sdk.TaskStateInputRequired: // the question has just been answered
		s.State = sdk.TaskStateWorking
	case s.State == sdk.TaskStateFailed && run.Failure != nil:
		say(fmt.Sprintf("%s: %s (at %s)", run.Failure.Kind, run.Failure.Reason, run.Failure.Path))
	case s.State == sdk.TaskStateCompleted && run.Result == nil:
		say("Done, without a result.")
	}
	return s
}

// oldest returns the open question that was asked first.
func oldest(asked []api.Question) (first api.Question, open bool) {
	for _, q := range asked {
		if q.Answered.IsZero() && (!open || q.Asked.Before(first.Asked)) {
			first, open = q, true
		}
	}
	return first, open
}

// question returns a question as a message of the agent.
func question(of sdk.TaskInfo, q api.Question) *sdk.Message {
	text := q.Text
	if q.Problem != "" {
		text += "\n\nThe previous answer was not accepted: " + q.Problem
	}
	data := map[string]any{"question": q.Path, "version": q.Version}
	if len(q.Choices) > 0 {
		data["choices"] = q.Choices
	}
	if len(q.Schema) > 0 {
		data["schema"] = q.Schema
	}
	if q.Call != nil {
		data["call"] = q.Call
	}
	id := q.Version
	if q.Problem != "" {
		id += "-again"
	}
	return &sdk.Message{ID: id, Role: sdk.MessageRoleAgent, TaskID: of.TaskID, ContextID: of.ContextID, Parts: sdk.ContentParts{sdk.NewTextPart(text), sdk.NewDataPart(data)}}
}

// parts returns a result as parts, with files last. Files that are invalid or too large are sent as data.
func (c caller) parts(pipeline string, n *api.Node) sdk.ContentParts {
	var output *schema.Schema
	for _, s := range c.skills {
		if s.Name == pipeline {
			output = s.output
		}
	}
	rest, files, err := parts.Take(n.Content, output)
	switch {
	case err != nil:
		rest = n.Content
	case rest == nil:
		return files
	}
	shown := *n
	shown.Content = rest
	text, data := inside.Plain(&shown)
	first := sdk.NewTextPart(text)
	if data != nil {
		first = sdk.NewDataPart(data)
	}
	return append(sdk.ContentParts{first}, files...)
}

// known returns the run of a task with its result, or an error of the protocol if there is no such run.
func (a *agent) known(ctx context.Context, id sdk.TaskID) (api.Run, error) {
	if id == "" {
		return api.Run{}, invalid("the request names no task")
	}
	run, err := callerOf(ctx).Result(ctx, string(id), 0)
	if err == nil && !slices.Contains(a.names(), run.Pipeline) {
		err = sdk.ErrTaskNotFound
	}
	return run, failure(err)
}

// GetTask implements a2asrv.RequestHandler.
func (a *agent) GetTask(ctx context.Context, req *sdk.GetTaskRequest) (*sdk.Task, error) {
	run, err := a.known(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	return task(ctx, callerOf(ctx), run, req.HistoryLength)
}

// CancelTask implements a2asrv.RequestHandler.
func (a *agent) CancelTask(ctx context.Context, req *sdk.CancelTaskRequest) (*sdk.Task, error) {
	run, err := a.known(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	if run.Over() {
		return nil, sdk.NewError(sdk.ErrTaskNotCancelable, fmt.Sprintf("the task is %s", run.State))
	}
	c := callerOf(ctx)
	if run, err = c.Cancel(ctx, run.ID); err != nil {
		if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusConflict {
			return nil, sdk.NewError(sdk.ErrTaskNotCancelable, p.Detail)
		}
		return nil, failure(err)
	}
	return task(ctx, c, run, nil)
}

// pageBytes is the maximum size of the JSON on a page of tasks. A page always has at least one task.
const pageBytes = 4 << 20

// ListTasks implements a2asrv.RequestHandler.
func (a *agent) ListTasks(ctx context.Context, req *sdk.ListTasksRequest) (*sdk.ListTasksResponse, error) {
	size := cmp.Or(req.PageSize, 50)
	if size < 1 || size > 100 {
		return nil, invalid(fmt.Sprintf("pageSize is %d: want 1 to 100", size))
	}
	query := url.Values{"limit": {strconv.Itoa(size)}}
	if req.ContextID != "" {
		query.Set("label."+contextLabel, req.ContextID)
	}
	if req.StatusTimestampAfter != nil {
		query.Set("ended-since", req.StatusTimestampAfter.Format(time.RFC3339Nano))
	}
	if req.PageToken != "" {
		query.Set("before", req.PageToken)
	}
	for state, is := range states {
		if req.Status == is {
			query.Add("state", string(state))
		}
	}
	out := &sdk.ListTasksResponse{Tasks: []*sdk.Task{}, PageSize: size}
	if req.Status != "" && !query.Has("state") { // no run has this state
		return out, nil
	}
	if len(a.skills) == 1 {
		query.Set("pipeline", a.skills[0].Name)
	}
	c := callerOf(ctx)
	page, err := c.Runs(ctx, query)
	if err != nil {
		return nil, failure(err)
	}
	last, left := "", pageBytes
	for _, run := range page.Runs {
		if !slices.Contains(a.names(), run.Pipeline) {
			last = run.ID
			continue
		}
		if req.IncludeArtifacts {
			if run, err = c.Result(ctx, run.ID, 0); err != nil {
				continue // the run was removed meanwhile
			}
		}
		most := req.HistoryLength
		if most == nil {
			most = new(int)
		}
		t, err := task(ctx, c, run, most)
		if err != nil {
			return nil, err
		}
		if text, err := json.Marshal(t); err != nil {
			return nil, err
		} else if left -= len(text); left < 0 && len(out.Tasks) > 0 { // the next page will begin with this run
			page.Next = last
			break
		}
		out.Tasks, last = append(out.Tasks, t), run.ID
	}
	if out.NextPageToken = page.Next; page.Next == "" && req.PageToken == "" {
		out.TotalSize = len(out.Tasks)
	}
	return out, nil
}
