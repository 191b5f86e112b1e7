package client

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/remote"
	"github.com/stonelayer/stone/kind"
)

// names holds the ids of a request.
type names struct {
	key   string
	known bool // whether another process would derive the same ids
}

func namesOf(key string) names {
	if key == "" {
		return names{key: "stone-" + strings.ToLower(rand.Text())}
	}
	sum := sha256.Sum256([]byte(key))
	return names{"stone-" + hex.EncodeToString(sum[:16]), true}
}

// A talk is the exchange with the agent about one request.
type talk struct {
	cfg     Config
	id      string // id of the capability
	agent   *a2aclient.Client
	streams bool
	req     *call.Request
	names   names
	secrets *secrets
	out     output
	task    sdk.TaskID // id of the task; empty until it is known
	told    string     // the question that was last answered
	stale   int        // how many times in a row the task has asked that question again
	seen    *sdk.Task  // the task as last reported by the stream
}

// started is the agent's reply to a message: the id of a new task, a task that has already ended, or the answer itself. It is
// recorded as a remote.Task.
type started struct {
	Task    sdk.TaskID   `json:"task,omitempty"`
	Ended   *sdk.Task    `json:"ended,omitempty"`
	Message *sdk.Message `json:"message,omitempty"`
}

// run sends the message, or finds the task of an earlier attempt, and waits for the answer.
func (t *talk) run(ctx context.Context, parts sdk.ContentParts) (*call.Reply, error) {
	for n := 1; n <= maxTasks; n++ {
		fresh := false
		at, err := stone.Step(ctx, remote.Step, fmt.Sprintf("%s-%d", t.names.key, n), func(ctx context.Context, id string) (started, error) {
			fresh = true
			return t.send(ctx, id, parts)
		})
		if err != nil {
			return nil, err
		}
		if at.Message != nil {
			return t.out.message(at.Message)
		}
		t.task = at.Task
		if at.Ended == nil {
			if err := remote.Canceling(ctx, t.cancel); err != nil {
				return nil, err
			}
		}
		var reply *call.Reply
		if at.Ended != nil { // the agent no longer has the task
			reply, _, err = t.settle(ctx, at.Ended)
		} else {
			reply, err = t.follow(ctx)
		}
		if gone := (*goneError)(nil); !fresh && errors.As(err, &gone) {
			continue // the run has been resumed, so try again
		}
		return reply, err
	}
	return nil, failed("%d tasks of the agent have failed", maxTasks)
}

// A goneError means that the task cannot be continued. A new task can replace it.
type goneError struct{ err *call.Error }

func (e *goneError) Error() string { return e.err.Error() }
func (e *goneError) Unwrap() error { return e.err }

// send sends the message, unless the request already has a task.
func (t *talk) send(ctx context.Context, id string, parts sdk.ContentParts) (started, error) {
	if t.names.known {
		if task := t.find(ctx); task != "" {
			return started{Task: task}, nil
		}
	}
	m := &sdk.Message{ID: id, ContextID: t.names.key, Role: sdk.MessageRoleUser, Parts: parts}
	if t.cfg.Skill != "" {
		m.SetMeta("skill", t.cfg.Skill)
	}
	// no output modes: all modes are accepted
	result, err := t.agent.SendMessage(ctx, &sdk.SendMessageRequest{Message: m, Config: &sdk.SendMessageConfig{ReturnImmediately: true}})
	if err != nil {
		return started{}, t.cfg.failure(t.secrets, "the message cannot be sent: ", err)
	}
	switch result := result.(type) {
	case *sdk.Message:
		return started{Message: result}, nil
	case *sdk.Task:
		t.task = result.ID // kept so that the task can be cancelled
		if result.Status.State.Terminal() {
			return started{Task: result.ID, Ended: result}, nil
		}
		return started{Task: result.ID}, nil
	}
	return started{}, failed("the agent answers with %T: want a task or a message", result)
}

// find returns the task that an earlier attempt created for the request, or nil if there is none, if it has failed, or if the
// agent cannot list tasks.
func (t *talk) find(ctx context.Context) sdk.TaskID {
	list, err := t.agent.ListTasks(ctx, &sdk.ListTasksRequest{ContextID: t.names.key, PageSize: 100})
	for i := 0; err == nil && i < len(list.Tasks); i++ {
		if one := list.Tasks[i]; one.ContextID == t.names.key && !lost(one.Status.State) {
			return one.ID
		}
	}
	return ""
}

func lost(s sdk.TaskState) bool {
	return s == sdk.TaskStateFailed || s == sdk.TaskStateCanceled || s == sdk.TaskStateRejected
}

// follow waits until the task ends, and answers its questions.
func (t *talk) follow(ctx context.Context) (*call.Reply, error) {
	misses := 0
	for {
		if t.streams {
			if err := t.listen(ctx); err != nil {
				t.cancel(ctx)
				return nil, err
			}
		}
		task, err := t.agent.GetTask(ctx, &sdk.GetTaskRequest{ID: t.task})
		if err != nil && t.seen != nil {
			task, err = t.seen, nil
		}
		switch {
		case errors.Is(err, sdk.ErrTaskNotFound):
			return nil, &goneError{failed("the agent has lost the task %s", t.task)}
		case err != nil:
			if misses++; ctx.Err() != nil || misses == maxLost {
				return nil, t.cfg.failure(t.secrets, "the task cannot be read: ", err)
			}
		default:
			misses = 0
			reply, stopped, err := t.settle(ctx, task)
			if stopped {
				return reply, err
			}
			if errors.Is(err, errAnswered) {
				continue
			}
		}
		select {
		case <-time.After(t.cfg.Poll * time.Duration(1+misses)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// errAnswered means that the task continues because its question was answered.
var errAnswered = errors.New("answered")

// settle returns the output of a task that has stopped, or the reason why there is none.
func (t *talk) settle(ctx context.Context, task *sdk.Task) (reply *call.Reply, stopped bool, err error) {
	said := t.secrets.clean(textOf(task.Status.Message))
	if said != "" {
		said = ": " + said
	}
	switch s := task.Status.State; s {
	case sdk.TaskStateCompleted:
		reply, err = t.out.task(task)
		return reply, true, err
	case sdk.TaskStateAuthRequired:
		return nil, true, &call.Error{Type: reasons.Unavailable, Message: "the agent requires a login by the user" + said}
	case sdk.TaskStateInputRequired:
		if t.unread(task) {
			return nil, false, nil
		}
		if err = t.ask(ctx, task); err == nil {
			return nil, false, errAnswered
		}
		return nil, true, err
	case sdk.TaskStateFailed, sdk.TaskStateRejected, sdk.TaskStateCanceled:
		how := strings.ToLower(strings.TrimPrefix(string(s), "TASK_STATE_"))
		return nil, true, &goneError{failed("the task of the agent is %s%s", how, said)}
	}
	return nil, false, nil
}

// question is the data of a question as sent by an agent of package server.
type question struct {
	Question string   `json:"question"`
	Version  string   `json:"version"`
	Choices  []string `json:"choices"`
}

// asked returns a string that identifies a question of a task. A question with a new time or id is a new question, even if its
// text is the same.
func asked(task *sdk.Task) string {
	about := []string{string(task.ID), textOf(task.Status.Message)}
	if m := task.Status.Message; m != nil {
		about = append(about, m.ID)
	}
	if when := task.Status.Timestamp; when != nil {
		about = append(about, when.UTC().Format(time.RFC3339Nano))
	}
	return strings.Join(about, "\n")
}

// unread reports whether a task still contains the question that was just answered. If questions have no times or ids, the agent
// may be asking the same question again.
func (t *talk) unread(task *sdk.Task) bool {
	if asked(task) != t.told {
		return false
	}
	t.stale++
	return t.stale <= maxLost
}

// ask asks the task's question in the run and sends the answer to the agent.
func (t *talk) ask(ctx context.Context, task *sdk.Task) error {
	text := t.secrets.clean(textOf(task.Status.Message))
	var q question
	if m := task.Status.Message; m != nil {
		for _, part := range m.Parts {
			if data, err := json.Marshal(part.Data()); err == nil && part.Data() != nil {
				_ = json.Unmarshal(data, &q) // data of other agents can have any form
			}
		}
	}
	about := asked(task)
	sum := sha256.Sum256([]byte(about))
	digest := hex.EncodeToString(sum[:8])
	// The step is named after the question, because a process that resumes the run does not see questions that have been
	// answered.
	answer, err := stone.Step(ctx, "input-"+digest, about, func(ctx context.Context, _ string) (string, error) {
		return stone.In(ctx).Ask(ask.Question{Name: t.id, Text: text, Choices: q.Choices})
	})
	switch {
	case errors.Is(err, kind.Waiting) || ctx.Err() != nil:
		return err
	case err != nil || answer == "":
		t.cancel(ctx)
		if err == nil {
			err = errors.New("the question was cancelled")
		}
		return failed("the agent asks %q, which nobody answers: %v", text, err)
	}
	t.told, t.stale = about, 0
	m := &sdk.Message{ID: t.names.key + "-" + digest, Role: sdk.MessageRoleUser, TaskID: task.ID, ContextID: task.ContextID, Parts: sdk.ContentParts{sdk.NewTextPart(answer)}}
	if q.Question != "" {
		m.SetMeta("question", q.Question)
		m.SetMeta("version", q.Version)
	}
	_, err = t.agent.SendMessage(ctx, &sdk.SendMessageRequest{Message: m, Config: &sdk.SendMessageConfig{ReturnImmediately: true}})
	if err != nil {
		return t.cfg.failure(t.secrets, "the answer cannot be sent: ", err)
	}
	return nil
}

// listen streams the agent's text until the task stops, the stream ends, or the stream is silent for too long. It returns an
// error only if the agent has sent too much.
func (t *talk) listen(ctx context.Context) error {
	for event, err := range t.agent.SubscribeToTask(ctx, &sdk.SubscribeToTaskRequest{ID: t.task}) {
		if err != nil {
			return nil
		}
		var status sdk.TaskStatus
		switch e := event.(type) {
		case *sdk.Task:
			t.out.begin(e.Artifacts)
			status = e.Status
		case *sdk.TaskArtifactUpdateEvent:
			if t.out.update(e); t.out.size > t.cfg.MaxBody {
				return failed("the agent's answer has more than %d bytes", t.cfg.MaxBody)
			}
		case *sdk.TaskStatusUpdateEvent:
			status = e.Status
		}
		switch s := status.State; {
		case s.Terminal():
			t.seen = &sdk.Task{ID: t.task, Status: status, Artifacts: t.out.artifacts}
			return nil
		case s == sdk.TaskStateInputRequired || s == sdk.TaskStateAuthRequired:
			return nil
		}
	}
	return nil
}

// cancel cancels the task after the request has ended.
func (t *talk) cancel(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer stop()
	if t.task == "" { // the reply that contains its id may have been lost
		t.task = t.find(ctx)
	}
	if t.task == "" {
		return
	}
	_, _ = t.agent.CancelTask(ctx, &sdk.CancelTaskRequest{ID: t.task}) // an error means that the task has ended or cannot be reached
}
