package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// tasksExtension is the extension that allows a call to return its run as a task. It is implemented as described in SEP-2663
// (modelcontextprotocol.io/seps/2663-tasks-extension).
const tasksExtension = "io.modelcontextprotocol/tasks"

const (
	// beforeTask is how long a call waits for its run before it returns a task.
	beforeTask = 500 * time.Millisecond
	// pollTask is the interval at which clients should poll a task.
	pollTask = time.Second
)

// A task represents a run to a client with the extension.
type task struct {
	sdk.ResultBase
	ResultType string              `json:"resultType"`
	ID         string              `json:"taskId"`
	Status     string              `json:"status"`
	Message    string              `json:"statusMessage,omitempty"`
	Created    time.Time           `json:"createdAt"`
	Updated    time.Time           `json:"lastUpdatedAt"`
	TTL        *int64              `json:"ttlMs"` // null: the run is kept until someone removes it
	Poll       int64               `json:"pollIntervalMs,omitempty"`
	Result     *sdk.CallToolResult `json:"result,omitempty"`
	Requests   sdk.InputRequestMap `json:"inputRequests,omitempty"`
}

// taskParams holds the parameters of the task methods.
type taskParams struct {
	sdk.ParamsBase
	ID        string                     `json:"taskId"`
	Responses map[string]json.RawMessage `json:"inputResponses,omitempty"`
}

// done is the result of a method that returns nothing.
type done struct {
	sdk.ResultBase
	ResultType string `json:"resultType"`
}

// takesTasks reports whether the client supports the extension.
func takesTasks(session *sdk.ServerSession) bool {
	params := session.InitializeParams()
	if params == nil || params.Capabilities == nil || params.ProtocolVersion < "2026-07-28" {
		return false
	}
	_, ok := params.Capabilities.Extensions[tasksExtension]
	return ok
}

type taskKey struct{}

// giveTask makes the call of ctx return a run as a task.
func giveTask(ctx context.Context, run api.Run) {
	*ctx.Value(taskKey{}).(*task) = taskOf(run, "task")
}

// addTasks adds the task methods, which the SDK does not have.
func (s *server) addTasks() error {
	if err := sdk.AddReceivingCustomMethod(s.Server, "tasks/get", s.getTask); err != nil {
		return err
	}
	if err := sdk.AddReceivingCustomMethod(s.Server, "tasks/update", s.updateTask); err != nil {
		return err
	}
	return sdk.AddReceivingCustomMethod(s.Server, "tasks/cancel", s.cancelTask)
}

func taskOf(run api.Run, resultType string) task {
	t := task{ResultType: resultType, ID: run.ID, Status: "working", Created: run.Started, Updated: run.Started, Poll: pollTask.Milliseconds()}
	if run.Over() {
		t.Updated, t.Poll = run.Ended, 0
	}
	return t
}

// runOf returns the run that a task request refers to.
func runOf(ctx context.Context, session *sdk.ServerSession, params *taskParams) (run api.Run, err error) {
	if !takesTasks(session) {
		return run, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "the request does not declare the extension " + tasksExtension, Data: []byte(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`)}
	}
	if run, err = callerOf(ctx).Result(ctx, params.ID, 0); notFound(err) {
		return run, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such task"}
	}
	return run, err
}

func (s *server) getTask(ctx context.Context, session *sdk.ServerSession, params *taskParams) (*task, error) {
	run, err := runOf(ctx, session, params)
	if err != nil {
		return nil, err
	}
	t := taskOf(run, "complete")
	switch run.State {
	case journal.Canceled:
		t.Status = "cancelled"
	case journal.Done, journal.Failed, journal.Refused: // the task state "failed" is reserved for protocol errors
		t.Status, t.Result = "completed", s.outcomeOf(run, nil)
	case journal.Waiting:
		open, err := callerOf(ctx).Questions(ctx, run.ID)
		if err != nil {
			return nil, err
		}
		t.Status, t.Requests = "input_required", requests(open, nil)
	}
	return &t, nil
}

// updateTask answers the questions of a task's run.
func (s *server) updateTask(ctx context.Context, session *sdk.ServerSession, params *taskParams) (*done, error) {
	run, err := runOf(ctx, session, params)
	if err != nil {
		return nil, err
	}
	if !elicits(session) {
		return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "the client has not declared that it can ask its user", Data: []byte(`{"requiredCapabilities":{"elicitation":{}}}`)}
	}
	c := callerOf(ctx)
	open, err := c.Questions(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	given := sdk.InputResponseMap{}
	for _, q := range open { // responses to other questions are ignored
		if raw, ok := params.Responses[q.Path]; ok {
			res := new(sdk.ElicitResult)
			if err := json.Unmarshal(raw, res); err != nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the response to %q cannot be read: %v", q.Path, err)}
			}
			given[q.Path] = res
		}
	}
	said, err := answerAll(ctx, c, run.ID, open, given)
	for _, problem := range said.refused {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: problem}
	}
	return &done{ResultType: "complete"}, err
}

func (s *server) cancelTask(ctx context.Context, session *sdk.ServerSession, params *taskParams) (*done, error) {
	run, err := runOf(ctx, session, params)
	if err == nil && !run.Over() {
		_, err = callerOf(ctx).Cancel(ctx, run.ID)
	}
	if err != nil && !notFound(err) { // the run may have ended meanwhile
		return nil, err
	}
	return &done{ResultType: "complete"}, nil
}
