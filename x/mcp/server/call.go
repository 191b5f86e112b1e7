package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// An outcome is the structured content of a call's result.
type outcome struct {
	Run       string           `json:"run"`
	State     journal.State    `json:"state"`
	Result    json.RawMessage  `json:"result,omitempty"`
	Node      string           `json:"node,omitempty"` // URI of the result node
	Failure   *journal.Failure `json:"failure,omitempty"`
	Questions []api.Question   `json:"questions,omitempty"` // open questions
	Usage     budget.Total     `json:"usage,omitzero"`
}

// call starts a run of a pipeline, or resumes a run whose questions the client has been asked, and waits for the run.
func (s *server) call(ctx context.Context, req *sdk.CallToolRequest, p pipeline) (*sdk.CallToolResult, error) {
	c := callerOf(ctx)
	run, said, err := begin(ctx, c, req, p)
	if err != nil {
		return refusal(err)
	}
	// When the call is cancelled, check at once whether the client is gone, because it may leave right afterwards.
	cancelled := make(chan bool, 1)
	context.AfterFunc(ctx, func() { cancelled <- !s.gone() })
	out, err := s.await(ctx, c, req, run, said)
	if err != nil && ctx.Err() != nil && req.Params.RequestState == "" && <-cancelled {
		abandon(ctx, c, run.ID)
	}
	if err != nil {
		return refusal(err)
	}
	return out, nil
}

// begin returns the run of a call, after starting it if necessary. If the call contains answers, begin first records them.
func begin(ctx context.Context, c client, req *sdk.CallToolRequest, p pipeline) (run api.Run, said said, err error) {
	if req.Params.RequestState == "" {
		input, err := p.input(req.Params.Arguments)
		if err != nil {
			return run, said, err
		}
		// Start the run even if the call is cancelled meanwhile: only a known run can be cancelled.
		run, err = c.Start(context.WithoutCancel(ctx), p.Name, input)
		return run, said, err
	}
	id := stateOf(req).run
	if run, err = c.Run(ctx, id); err != nil || run.Pipeline != p.Name {
		return run, said, errState
	}
	said, err = given(ctx, c, run.ID, req)
	return run, said, err
}

var errState = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState is not that of a call of this tool"}

// given records the user's answers that came with a call.
func given(ctx context.Context, c client, run string, req *sdk.CallToolRequest) (said, error) {
	open, err := c.Questions(ctx, run)
	if err != nil {
		return said{}, err
	}
	return answerAll(ctx, c, run, open, req.Params.InputResponses)
}

// state is the requestState of a call whose user was asked questions. It needs no signature, because the server checks whether
// the caller may see the run.
type state struct {
	run     string // empty if the text was not created by String
	round   int    // number of times that the user has been asked
	refused int    // consecutive rejected answers
}

func (s state) String() string { return fmt.Sprintf("%s/%d/%d", s.run, s.round, s.refused) }

func stateOf(req *sdk.CallToolRequest) (s state) {
	parts := strings.Split(req.Params.RequestState, "/")
	if len(parts) != 3 {
		return state{}
	}
	var errs [2]error
	s.run = parts[0]
	s.round, errs[0] = strconv.Atoi(parts[1])
	s.refused, errs[1] = strconv.Atoi(parts[2])
	if errs != [2]error{} || s.round < 1 || s.refused < 0 {
		return state{}
	}
	return s
}

// abandon cancels the run of a call that was cancelled by its client. It is not used for a client that received the run in a
// RequestState, because such a client can repeat its call.
func abandon(ctx context.Context, c client, run string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, _ = c.Cancel(ctx, run) // an error means that the run is over or the server is closing
}

// maxRefused is the maximum number of consecutive rejected answers, after which the server stops asking the user.
const maxRefused = 3

// await waits until a run has stopped or the wait has elapsed. If the client can ask its user, await asks the run's questions,
// until the user leaves one open.
func (s *server) await(ctx context.Context, c client, req *sdk.CallToolRequest, run api.Run, said said) (*sdk.CallToolResult, error) {
	told := s.tell(ctx, c, req, run.ID)
	defer told.stop()
	wait := s.wait
	if takesTasks(req.Session) {
		wait = min(wait, beforeTask)
	}
	before := stateOf(req)
	refused := before.refused
	if refused++; len(said.refused) == 0 {
		refused = 0
	}
	for {
		run, open, err := stopped(ctx, c, run.ID, wait)
		if err != nil {
			return nil, err
		}
		asks := len(open) > 0 && elicits(req.Session) && !said.left && refused < maxRefused
		switch {
		case asks && inResults(req.Session):
			told.finish(run.State)
			return &sdk.CallToolResult{InputRequests: requests(open, said.refused), RequestState: state{run.ID, before.round + 1, refused}.String()}, nil
		case asks:
			if said, err = elicit(ctx, c, req.Session, run.ID, open, said); err != nil {
				return nil, err
			}
			if len(said.refused) > 0 {
				refused++
			}
		case !run.Over() && run.State != journal.Waiting && takesTasks(req.Session):
			giveTask(ctx, run)
			return new(sdk.CallToolResult), nil
		default:
			if run.Over() || run.State == journal.Waiting {
				told.finish(run.State)
			}
			return s.outcomeOf(run, open), nil
		}
	}
}

// stopped waits until a run has stopped or the wait has elapsed, and returns the run and its open questions.
func stopped(ctx context.Context, c client, id string, wait time.Duration) (run api.Run, open []api.Question, err error) {
	if run, err = c.Result(ctx, id, wait); err != nil {
		return run, nil, err
	}
	if ctx.Err() != nil {
		return run, nil, context.Cause(ctx)
	}
	if run.State == journal.Waiting {
		open, err = c.Questions(ctx, id)
	}
	return run, open, err
}

// outcomeOf returns the call's result for a run.
func (s *server) outcomeOf(run api.Run, open []api.Question) *sdk.CallToolResult {
	out := outcome{Run: run.ID, State: run.State, Questions: open, Usage: run.Usage}
	res := &sdk.CallToolResult{}
	var text string
	switch {
	case run.Result != nil:
		out.Result, out.Node = run.Result.Content, nodeURI(run.ID, run.Result.ID.String())
		text = plain(run.Result.Content)
	case run.State == journal.Done:
		text = fmt.Sprintf("The run %s is done. It has no result.", run.ID)
	case run.Over():
		res.IsError = true
		text = fmt.Sprintf("The run %s %s.", run.ID, ended(run.State))
		if out.Failure = run.Failure; run.Failure != nil {
			text = fmt.Sprintf("The run %s %s: %s (%s at %s).", run.ID, ended(run.State), run.Failure.Reason, run.Failure.Kind, address.Readable(run.Failure.Path))
		}
	case len(open) > 0:
		text = fmt.Sprintf("The run %s waits for an answer: run_answer asks the user, or %s.", run.ID, byPerson(run.ID))
		if s.open {
			text = fmt.Sprintf("The run %s waits for an answer: send it with run_answer.", run.ID)
		}
		for _, q := range open {
			text += fmt.Sprintf("\n- question %q: %s", q.Path, messageOf(q, ""))
			if len(q.Choices) > 0 {
				text += fmt.Sprintf(" (one of: %s)", strings.Join(q.Choices, ", "))
			}
		}
	default:
		text = fmt.Sprintf("The run %s is %s: wait for it with run_result.", run.ID, run.State)
	}
	res.Content, res.StructuredContent = []sdk.Content{&sdk.TextContent{Text: text}}, out
	return res
}

// ended describes how a run ended without a result.
func ended(s journal.State) string {
	if s == journal.Failed {
		return "failed"
	}
	return "was " + string(s)
}

// plain returns a JSON value as text: a string without quotes, any other value as JSON.
func plain(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	return string(content)
}

// refusal returns the result of a call that failed with an error. The model receives the reason; protocol errors go to the
// client.
func refusal(err error) (*sdk.CallToolResult, error) {
	if errors.As(err, new(*jsonrpc.Error)) {
		return nil, err
	}
	res := &sdk.CallToolResult{}
	res.SetError(err)
	return res, nil
}

// notFound reports whether err is a not-found problem of the API.
func notFound(err error) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Status != http.StatusForbidden && p.Status < 500
}
