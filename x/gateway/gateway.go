package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/talk"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/x/gateway/internal/anthropic"
	"github.com/stonelayer/stone/x/gateway/internal/openai"
)

// Part serves the protocols of OpenAI and Anthropic. It can be a part of a program, or an element of serve.Config.Protocols.
var Part = protocol.Protocol{Routes: routes(), Pipelines: intents, Token: anthropic.Token, Fail: fail}

// intents returns a pipeline for each intent of an applicator, except the intents for grading and checking answers.
func intents(app *call.Applicator) map[string]stone.Ashlar {
	all := map[string]stone.Ashlar{}
	if app == nil || app.Registry == nil {
		return all
	}
	add := func(intent string) {
		if intent != terms.Grade && intent != terms.Check {
			all[intent] = talk.Intent(app, intent)
		}
	}
	for intent := range app.Intents {
		add(intent)
	}
	for intent := range app.Registry.Intents() {
		add(intent)
	}
	return all
}

// routes returns the routes of the model protocols.
func routes() (out []protocol.Route) {
	for _, r := range anthropic.Routes(openai.Routes()) {
		role := protocol.Read
		if r.Starts {
			role = "" // checked for each model: an intent requires a different role than a pipeline
		}
		route := protocol.Route{Pattern: r.Pattern, Role: role, Serve: func(w http.ResponseWriter, req *http.Request, c protocol.Caller) error {
			if err := protocol.WantType(req, "application/json"); err != nil {
				return err
			}
			if req.Method == http.MethodGet && req.URL.Query().Get("stream") == "true" {
				leave, err := c.Hold()
				if err != nil {
					return err
				}
				defer leave()
			}
			return r.Serve(w, req, gateway{c})
		}}
		if r.Pattern == "GET /v1/responses/{id}" {
			route.Waits = func(r *http.Request) bool { return r.URL.Query().Has("stream") }
		}
		out = append(out, route)
	}
	return append(out, protocol.Route{Pattern: "POST /v1/embeddings", Role: protocol.Act, Serve: postEmbeddings})
}

// fail replies with an error in the format of the client's protocol. It returns false for other clients.
func fail(w http.ResponseWriter, r *http.Request, err error, problem func(error) *api.Problem) bool {
	messages := anthropic.Serves(r)
	if !messages && !openai.Serves(r.URL.Path) {
		return false
	}
	e := openai.Of(err)
	if e == nil {
		e = openai.OfProblem(problem(err))
	}
	if messages {
		anthropic.Fail(w, e)
	} else {
		e.Write(w)
	}
	return true
}

// A gateway runs models on the server on behalf of one caller. It implements openai.Backend.
type gateway struct{ protocol.Caller }

// Models returns the published pipelines, and the intents that the caller may call.
func (g gateway) Models() (all []openai.Model) {
	live := g.Settings().Live
	for _, m := range g.Caller.Models() {
		all = append(all, openai.Model{Model: m, Live: slices.Contains(live, m.Name)})
	}
	return all
}

// Live returns the live text of a run, or nil if this process does not execute the run.
func (g gateway) Live(id string) *openai.Live {
	for _, w := range g.Watchers(id) {
		if live, ok := w.(*openai.Live); ok {
			return live
		}
	}
	return nil
}

// IgnoresTool reports whether tools of this type are removed from requests according to the configuration.
func (g gateway) IgnoresTool(kind string) bool {
	return slices.Contains(g.Settings().IgnoreTools, kind)
}

// permit returns an error unless the caller may start, cancel and remove runs of the pipeline.
func (g gateway) permit(name string) error {
	if _, err := g.Pipeline(name); err != nil {
		return g.Needs(protocol.Act)
	}
	return g.Needs(protocol.Start)
}

func (g gateway) Start(ctx context.Context, start openai.Start) (out api.Run, err error) {
	if err := g.permit(start.Model); err != nil {
		return out, err
	}
	run := protocol.Run{
		Start: api.Start{Pipeline: start.Model, Input: start.Input, Labels: start.Labels, Interactive: start.Interactive},
		Keep:  start.Keep, Given: start.Given,
	}
	if start.Live {
		run.Watch = func(cancel context.CancelCauseFunc) event.Watcher { return &openai.Live{Void: cancel} }
	}
	info, err := g.Caller.Start(ctx, start.ID, run)
	return g.Describe(info), err
}

func (g gateway) Wait(ctx context.Context, id string) (out api.Run, err error) {
	info, err := g.Journal().Find(context.WithoutCancel(ctx), id)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // when the server is drained, stop waiting: another server resumes the run
		select {
		case <-g.Drain():
			cancel()
		case <-ctx.Done():
		}
	}()
	out, err = g.Await(ctx, info)
	if info.State = out.State; err == nil && g.Going(info) {
		err = g.Closing()
	}
	return out, err
}

func (g gateway) Kept(ctx context.Context, id string) (json.RawMessage, error) {
	return g.Caller.Kept(ctx, id)
}

func (g gateway) Cancel(ctx context.Context, id string) error {
	if err := g.permitted(ctx, id); err != nil {
		return err
	}
	err := g.Caller.Cancel(ctx, id)
	if err != nil {
		g.Log().Warn("a run could not be canceled", "run", id, "error", err) // the client may be gone, so log the error
	}
	return err
}

func (g gateway) Remove(ctx context.Context, id string) error {
	if err := g.permitted(ctx, id); err != nil {
		return err
	}
	return g.Caller.Remove(ctx, id)
}

// permitted returns an error unless the caller may cancel and remove the run.
func (g gateway) permitted(ctx context.Context, id string) error {
	info, err := g.Journal().Find(ctx, id)
	if err != nil {
		return err
	}
	return g.permit(info.Pipeline)
}
