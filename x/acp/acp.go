package acp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/stonelayer/stone/internal/inside"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

// Part adds the command acp to programs that contain the part of package cli/serve:
//
//	func main() { cli.Main(Pipeline, serve.Part, acp.Part) }
var Part = inside.Protocol{Command: "acp", Client: func(ctx context.Context, of *serve.Server, o inside.Options, in io.Reader, out io.Writer) error {
	return Serve(ctx, of, o.By, in, out)
}}

// Labels of a session's runs.
const (
	sessionLabel = "acp-session"
	turnLabel    = "acp-turn"   // number of the turn, from 1
	editorLabel  = "acp-editor" // connection that started the turn
	folderLabel  = "acp-cwd"
	promptLabel  = "acp-prompt" // beginning of the prompt
	tenantLabel  = "tenant"     // set by servers with tenants
)

// maxPrompt is how much of a prompt's beginning is kept as a label, in bytes.
const maxPrompt = 500

// Serve serves the pipelines to one editor, which sends its requests to in and reads the replies from out, until the editor
// disconnects or ctx is done. The editor has all permissions. The argument by names the user who is recorded as the author of
// answers, such as "user ada". When Serve returns, a read of in may still be in progress.
func Serve(ctx context.Context, of *serve.Server, by string, in io.Reader, out io.Writer) error {
	all, err := of.Pipelines()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("acp: there is no pipeline to talk to: name one")
	}
	a := &agent{name: rand.Text(), api: inside.As(of, serve.Principal{By: by, Interactive: true}), sessions: map[sdk.SessionId]*session{}}
	for _, p := range all {
		shape, err := inside.ShapeOf(p.Input)
		if err != nil {
			return fmt.Errorf("acp: pipeline %q: %w", p.Name, err)
		}
		a.pipelines = append(a.pipelines, pipeline{p, shape})
	}
	from, to := io.Pipe() // unlike in, a pipe can be closed during a read
	defer from.Close()
	a.editor = sdk.NewAgentSideConnection(a, out, from)
	a.editor.SetLogger(slog.New(slog.DiscardHandler)) // otherwise it would write to the editor's standard error
	go func() {                                       // no request is handled before a.editor is set
		_, err := io.Copy(to, in)
		to.CloseWithError(err)
	}()
	select {
	case <-a.editor.Done():
	case <-ctx.Done():
	}
	return nil
}

// A pipeline is a published pipeline. The editor selects it as a session mode.
type pipeline struct {
	api.Pipeline
	inside.Shape
}

// A session is a session that is open in this process.
type session struct {
	folder string
	mode   string
	turn   sync.Mutex // locked while a prompt is being handled
	voice  voice      // locked for a turn; only its holder sends updates
}

// An agent implements sdk.Agent with the API of a server.
type agent struct {
	name      string // name of the connection
	api       inside.Client
	editor    *sdk.AgentSideConnection
	pipelines []pipeline

	mu       sync.Mutex
	sessions map[sdk.SessionId]*session
}

var (
	_ sdk.Agent       = (*agent)(nil)
	_ sdk.AgentLoader = (*agent)(nil)
)

// Initialize implements sdk.Agent.
func (a *agent) Initialize(context.Context, sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	takes := func(kind string) bool {
		return slices.ContainsFunc(a.pipelines, func(p pipeline) bool { return p.Shape.Media != "" && slices.Contains(p.Files, kind) })
	}
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		AgentInfo:       &sdk.Implementation{Name: "stone", Title: sdk.Ptr("Stone"), Version: "1"},
		AuthMethods:     []sdk.AuthMethod{},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession:         true,
			PromptCapabilities:  sdk.PromptCapabilities{EmbeddedContext: true, Image: takes("image/*"), Audio: takes("audio/*")},
			SessionCapabilities: sdk.SessionCapabilities{List: &sdk.SessionListCapabilities{}, Resume: &sdk.SessionResumeCapabilities{}, Close: &sdk.SessionCloseCapabilities{}},
		},
	}, nil
}

// Authenticate implements sdk.Agent.
func (a *agent) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, nil
}

// NewSession implements sdk.Agent.
func (a *agent) NewSession(_ context.Context, req sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	id := sdk.SessionId("s-" + strings.ToLower(rand.Text()))
	s := a.open(id, req.Cwd, "")
	return sdk.NewSessionResponse{SessionId: id, Modes: a.modes(s)}, nil
}

// open returns the session with the id. If it is not open in this process yet, open opens it.
func (a *agent) open(id sdk.SessionId, folder, mode string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[id]
	if s == nil {
		if !slices.ContainsFunc(a.pipelines, func(p pipeline) bool { return p.Name == mode }) {
			mode = a.pipelines[0].Name
		}
		s = &session{folder: folder, mode: mode, voice: voice{a: a, id: id}}
		a.sessions[id] = s
	}
	return s
}

func (a *agent) modes(s *session) *sdk.SessionModeState {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := &sdk.SessionModeState{CurrentModeId: sdk.SessionModeId(s.mode)}
	for _, p := range a.pipelines {
		mode := sdk.SessionMode{Id: sdk.SessionModeId(p.Name), Name: p.Name}
		if p.Description != "" {
			mode.Description = sdk.Ptr(p.Description)
		}
		out.AvailableModes = append(out.AvailableModes, mode)
	}
	return out
}

// SetSessionMode implements sdk.Agent. It selects the pipeline that the session's next turns run.
func (a *agent) SetSessionMode(_ context.Context, req sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[req.SessionId]
	switch {
	case s == nil:
		return sdk.SetSessionModeResponse{}, wrong("session %q is not loaded: load it first", req.SessionId)
	case !slices.ContainsFunc(a.pipelines, func(p pipeline) bool { return p.Name == string(req.ModeId) }):
		return sdk.SetSessionModeResponse{}, wrong("there is no mode %q", req.ModeId)
	}
	s.mode = string(req.ModeId)
	return sdk.SetSessionModeResponse{}, nil
}

// SetSessionConfigOption implements sdk.Agent.
func (a *agent) SetSessionConfigOption(context.Context, sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	return sdk.SetSessionConfigOptionResponse{}, wrong("a session has no options")
}

// CloseSession implements sdk.Agent.
func (a *agent) CloseSession(ctx context.Context, req sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	a.mu.Lock()
	delete(a.sessions, req.SessionId)
	a.mu.Unlock()
	turns, err := a.turns(ctx, req.SessionId, 1, nil)
	if err != nil || len(turns) == 0 || turns[0].Over() || turns[0].State == journal.Waiting && turns[0].Labels[editorLabel] != a.name {
		return sdk.CloseSessionResponse{}, err
	}
	_, _ = a.api.Cancel(ctx, turns[0].ID) // an error means that the run has ended or belongs to another process
	return sdk.CloseSessionResponse{}, nil
}

// Cancel implements sdk.Agent. It does nothing, because the connection has already cancelled the context of the prompt.
func (a *agent) Cancel(context.Context, sdk.CancelNotification) error { return nil }

// wrong returns an error of the protocol whose message the editor shows.
func wrong(format string, args ...any) error {
	return sdk.NewInvalidParams(map[string]any{"error": fmt.Sprintf(format, args...)})
}

// turns returns a session's newest runs that match a query, newest first. Runs of tenants are omitted: the editor can see all
// runs of the database, and anyone who starts a run chooses its labels.
func (a *agent) turns(ctx context.Context, id sdk.SessionId, most int, more url.Values) (turns []api.Run, err error) {
	query := url.Values{"label." + sessionLabel: {string(id)}, "limit": {fmt.Sprint(most)}}
	maps.Copy(query, more)
	for {
		page, err := a.api.Runs(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, run := range page.Runs {
			if run.Labels[tenantLabel] == "" && len(turns) < most {
				turns = append(turns, run)
			}
		}
		if len(turns) == most || page.Next == "" {
			return turns, nil
		}
		query.Set("before", page.Next)
	}
}

// maxListed is the maximum number of runs that are read to list sessions, and of turns in the history of a loaded session.
const maxListed = 1000

// ListSessions implements sdk.Agent. It lists the sessions to which the newest runs belong.
func (a *agent) ListSessions(ctx context.Context, req sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	out := sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
	page, err := a.api.Runs(ctx, url.Values{"limit": {fmt.Sprint(maxListed)}})
	if err != nil {
		return out, err
	}
	at := map[string]int{}
	for _, run := range page.Runs {
		id := run.Labels[sessionLabel]
		if id == "" || run.Labels[tenantLabel] != "" || req.Cwd != nil && run.Labels[folderLabel] != *req.Cwd {
			continue
		}
		title := sdk.Ptr(run.Labels[promptLabel])
		if i, seen := at[id]; seen { // an older run of the same session
			out.Sessions[i].Title = title
			continue
		}
		at[id] = len(out.Sessions)
		last := run.Started
		if run.Ended.After(last) {
			last = run.Ended
		}
		out.Sessions = append(out.Sessions, sdk.SessionInfo{SessionId: sdk.SessionId(id), Cwd: run.Labels[folderLabel], Title: title, UpdatedAt: sdk.Ptr(last.Format(time.RFC3339))})
	}
	return out, nil
}

// LoadSession implements sdk.AgentLoader.
func (a *agent) LoadSession(ctx context.Context, req sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	s, turns, err := a.reopen(ctx, req.SessionId, req.Cwd)
	if err == nil {
		err = a.replay(ctx, s, turns)
	}
	if err != nil {
		return sdk.LoadSessionResponse{}, err
	}
	return sdk.LoadSessionResponse{Modes: a.modes(s)}, nil
}

// ResumeSession implements sdk.Agent.
func (a *agent) ResumeSession(ctx context.Context, req sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	s, _, err := a.reopen(ctx, req.SessionId, req.Cwd)
	if err != nil {
		return sdk.ResumeSessionResponse{}, err
	}
	return sdk.ResumeSessionResponse{Modes: a.modes(s)}, nil
}

// reopen opens a session that already has turns.
func (a *agent) reopen(ctx context.Context, id sdk.SessionId, folder string) (*session, []api.Run, error) {
	turns, err := a.turns(ctx, id, maxListed, nil)
	if err != nil {
		return nil, nil, err
	}
	if len(turns) == 0 {
		return nil, nil, wrong("there is no session %q", id)
	}
	return a.open(id, cmp.Or(folder, turns[0].Labels[folderLabel]), turns[0].Pipeline), turns, nil
}

// replay sends the history of a session to the editor.
func (a *agent) replay(ctx context.Context, s *session, turns []api.Run) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	v := &s.voice
	rest := len(turns)
	for i, run := range turns {
		if run.State != journal.Done {
			continue
		}
		run, err := a.api.Result(ctx, run.ID, 0)
		if err != nil {
			return err
		}
		if run.Result != nil {
			whole, err := a.api.Node(ctx, run.ID, run.Result.ID.String()) // the result in the list lacks the conversation
			if err != nil {
				return err
			}
			run.Result = &whole
		}
		if told := conversation(run.Result); len(told) > 0 {
			calls := map[string]sdk.ToolCallId{}
			for _, m := range told {
				v.message(ctx, m, calls)
			}
			rest = i // only newer turns remain
		}
		break
	}
	for _, run := range slices.Backward(turns[:rest]) {
		v.heard(ctx, run.Labels[promptLabel])
		run, err := a.api.Result(ctx, run.ID, 0)
		if err != nil {
			return err
		}
		if run.State != journal.Waiting {
			v.end(ctx, run)
			continue
		}
		if run, err = a.stopped(ctx, v, run); err != nil {
			return err
		}
		open, err := a.api.Questions(ctx, run.ID)
		if err != nil {
			return err
		}
		for _, q := range open {
			v.paragraph(ctx, messageOf(q))
		}
	}
	return nil
}
