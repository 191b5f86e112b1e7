package server

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// helperNames contains the names of the tools that act on runs.
var helperNames = map[string]bool{"run_status": true, "run_result": true, "run_answer": true, "run_cancel": true}

// ofRun holds the arguments of a tool that acts on a run.
type ofRun struct {
	Run string `json:"run" jsonschema:"id of the run"`
}

// ofAnswer holds the arguments of run_answer if the model may answer.
type ofAnswer struct {
	Run      string `json:"run" jsonschema:"id of the run"`
	Question string `json:"question" jsonschema:"the question, as the run names it"`
	Response string `json:"response,omitempty" jsonschema:"the answer"`
	Cancel   bool   `json:"cancel,omitempty" jsonschema:"cancel the question instead"`
}

// addHelpers adds the tools run_status, run_result, run_answer and run_cancel, which act on runs.
func (s *server) addHelpers() {
	no, yes := false, true
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}
	helper(s, &sdk.Tool{Name: "run_status", Description: "Say how far a run is, and what it asks.", Annotations: reads}, func(ctx context.Context, c client, _ *sdk.CallToolRequest, in ofRun) (*sdk.CallToolResult, error) {
		run, err := c.Run(ctx, in.Run)
		if err != nil {
			return nil, err
		}
		return s.described(ctx, c, run)
	})
	helper(s, &sdk.Tool{Name: "run_result", Description: "Wait for a run, and return its result.", Annotations: reads}, func(ctx context.Context, c client, req *sdk.CallToolRequest, in ofRun) (*sdk.CallToolResult, error) {
		told := s.tell(ctx, c, req, in.Run)
		defer told.stop()
		run, err := c.Result(ctx, in.Run, s.wait)
		if err != nil {
			return nil, err
		}
		return s.described(ctx, c, run)
	})
	writes := &sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &yes}
	if s.open {
		helper(s, &sdk.Tool{Name: "run_answer", Description: "Answer a question of a run, which then continues.", Annotations: writes}, s.modelAnswers)
	} else {
		helper(s, &sdk.Tool{Name: "run_answer", Description: "Show the questions of a run to the user, who answers them; then the run continues.", Annotations: writes}, s.userAnswers)
	}
	stops := &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: &yes, OpenWorldHint: &no}
	helper(s, &sdk.Tool{Name: "run_cancel", Description: "Cancel a run.", Annotations: stops}, func(ctx context.Context, c client, _ *sdk.CallToolRequest, in ofRun) (*sdk.CallToolResult, error) {
		run, err := c.Cancel(ctx, in.Run)
		if err != nil {
			return nil, err
		}
		res := s.outcomeOf(run, nil)
		res.IsError = false // the tool has done its work, which is to describe the run
		return res, nil
	})
}

// modelAnswers answers a question with the model's answer.
func (s *server) modelAnswers(ctx context.Context, c client, _ *sdk.CallToolRequest, in ofAnswer) (*sdk.CallToolResult, error) {
	if err := c.model.Answer(ctx, in.Run, api.Answer{Question: in.Question, Response: in.Response, Cancel: in.Cancel}); err != nil {
		return nil, err
	}
	run, err := c.Result(ctx, in.Run, s.wait)
	if err != nil {
		return nil, err
	}
	return s.described(ctx, c, run)
}

// userAnswers makes the client ask its user the questions of a run, so that the model cannot answer them.
func (s *server) userAnswers(ctx context.Context, c client, req *sdk.CallToolRequest, in ofRun) (*sdk.CallToolResult, error) {
	run, err := c.Run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	if !elicits(req.Session) {
		return nil, fmt.Errorf("this client cannot ask its user, and a model does not answer: %s", byPerson(run.ID))
	}
	var said said
	if id := stateOf(req).run; id != "" {
		if id != run.ID {
			return nil, errState
		}
		if said, err = given(ctx, c, run.ID, req); err != nil {
			return nil, err
		}
	}
	return s.await(ctx, c, req, run, said)
}

// byPerson returns a text that explains how a person can answer the questions of a run.
func byPerson(run string) string {
	return fmt.Sprintf("a person answers with \"stone answer %s\", or on the page of the run", run)
}

func helper[In any](s *server, t *sdk.Tool, handle func(context.Context, client, *sdk.CallToolRequest, In) (*sdk.CallToolResult, error)) {
	t.OutputSchema = outcomeSchema(nil)
	sdk.AddTool(s.Server, t, func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		res, err := handle(ctx, callerOf(ctx), req, in)
		return res, nil, err
	})
}

// described returns the result of a tool that describes a run.
func (s *server) described(ctx context.Context, c client, run api.Run) (*sdk.CallToolResult, error) {
	if run.State == journal.Done && run.Result == nil {
		var err error
		if run, err = c.Result(ctx, run.ID, 0); err != nil {
			return nil, err
		}
	}
	var open []api.Question
	if run.State == journal.Waiting {
		var err error
		if open, err = c.Questions(ctx, run.ID); err != nil {
			return nil, err
		}
	}
	return s.outcomeOf(run, open), nil
}

const nodeScheme = "stone://run/"

func nodeURI(run, node string) string { return nodeScheme + run + "/node/" + node }

// readNode reads the node named by a URI.
func (s *server) readNode(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := req.Params.URI
	rest, ok := strings.CutPrefix(uri, nodeScheme)
	run, node, found := strings.Cut(rest, "/node/")
	run, errRun := url.PathUnescape(run)
	node, errNode := url.PathUnescape(node)
	if !ok || !found || errRun != nil || errNode != nil {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	n, err := callerOf(ctx).Node(ctx, run, node)
	if notFound(err) {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, err
	}
	kind, text := "application/json", string(n.Content)
	if strings.HasPrefix(text, `"`) {
		kind, text = "text/plain", plain(n.Content)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: kind, Text: text}}}, nil
}
