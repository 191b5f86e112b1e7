package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/talk"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/serve/internal/anthropic"
	"github.com/stonelayer/stone/serve/internal/openai"
)

// intents returns the intents of the Applicator as pipelines, which only the gateway
// publishes. Intents of judges are left out.
func intents(cfg Config) map[string]*Pipeline {
	app := cfg.Applicator
	if app == nil || app.Registry == nil {
		return nil
	}
	all := map[string]*Pipeline{}
	add := func(intent string) {
		if intent != call.EvalGrade && intent != call.EvalCheck {
			// A nil Grant of a Pipeline is all.
			all[intent] = &Pipeline{Name: intent, Ashlar: openai.Intent(app, intent), Grant: append([]string{}, cfg.Grant...), Limits: cfg.Limits}
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

// pipeline returns what a run with this name runs, or nil.
func (s *Server) pipeline(name string) *Pipeline { return cmp.Or(s.pipelines[name], s.intents[name]) }

// gatewayRoutes are the routes of the protocols of models.
func (s *Server) gatewayRoutes() (out []route) {
	for _, r := range anthropic.Routes(openai.Routes()) {
		role := Read
		if r.Starts {
			role = "" // models check it: an intent needs another one than a pipeline
		}
		out = append(out, route{r.Pattern, role, func(w http.ResponseWriter, req *http.Request, who Principal) error {
			if err := wantType(req, "application/json"); err != nil {
				return err
			}
			if req.Method == http.MethodGet && req.URL.Query().Get("stream") == "true" {
				leave, err := s.hold(who)
				if err != nil {
					return err
				}
				defer leave()
			}
			return r.Serve(w, req, gateway{s, who})
		}})
	}
	return append(out, route{"POST /v1/embeddings", Act, s.postEmbeddings})
}

// failGateway answers with an error in the form of the client's protocol. It reports false for other clients.
func (s *Server) failGateway(w http.ResponseWriter, r *http.Request, err error) bool {
	messages := anthropic.Serves(r)
	if !messages && !openai.Serves(r.URL.Path) {
		return false
	}
	e := openai.Of(err)
	if e == nil {
		e = openai.OfProblem(s.problemOf(r, err))
	}
	if messages {
		anthropic.Fail(w, e)
	} else {
		e.Write(w)
	}
	return true
}

// gateway is the server for one caller of the gateway.
type gateway struct {
	*Server
	who Principal
}

// Models returns the published pipelines, and the intents that the caller may ask.
func (g gateway) Models() (all []openai.Model) {
	for _, p := range g.published() {
		all = append(all, g.model(p))
	}
	if g.who.may(Act) {
		for name, p := range g.intents {
			if g.pipelines[name] == nil {
				all = append(all, g.model(p))
			}
		}
	}
	slices.SortFunc(all, func(a, b openai.Model) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (g gateway) model(p *Pipeline) openai.Model {
	return openai.Model{Model: talk.Model{Name: p.Name, Ashlar: p.Ashlar}, Live: slices.Contains(g.cfg.Live, p.Name)}
}

// Live returns the text of a run of this process, or nil.
func (g gateway) Live(id string) *openai.Live {
	return watcherOf[*openai.Live](g.Server, keyOf(g.who, id))
}

// IgnoresTool reports whether the configuration leaves tools of a type out.
func (g gateway) IgnoresTool(kind string) bool { return slices.Contains(g.cfg.IgnoreTools, kind) }

// permit checks that the caller may start, cancel and remove runs of a pipeline.
func (g gateway) permit(name string) error {
	role := Start
	if g.pipelines[name] == nil {
		role = Act
	}
	if !g.who.may(role) {
		return problem(api.Forbidden, http.StatusForbidden, "this needs the role %q, which the caller does not have", role)
	}
	return nil
}

func (g gateway) Start(ctx context.Context, start openai.Start) (out api.Run, err error) {
	p := g.pipeline(start.Model)
	if p == nil {
		return out, g.noPipeline(start.Model)
	}
	if err := g.permit(p.Name); err != nil {
		return out, err
	}
	req := api.Start{Pipeline: p.Name, Input: start.Input, Labels: start.Labels, Interactive: start.Interactive}
	starts := protocol.Run{Start: req, Keep: start.Keep, Given: start.Given}
	if start.Live {
		starts.Watch = func(cancel context.CancelCauseFunc) event.Watcher { return &openai.Live{Void: cancel} }
	}
	info, _, err := g.startOf(ctx, g.who, p, start.ID, starts)
	return run(g.who, info), err
}

func (g gateway) Wait(ctx context.Context, id string) (out api.Run, err error) {
	info, err := g.owned(context.WithoutCancel(ctx), g.who, id)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // another server resumes the run
		select {
		case <-g.drain:
			cancel()
		case <-ctx.Done():
		}
	}()
	out, err = g.await(ctx, g.who, info)
	if err == nil && g.closing() && goesOn(out.State) {
		err = closing()
	}
	return out, err
}

func (g gateway) Kept(ctx context.Context, id string) (json.RawMessage, error) {
	info, err := g.owned(ctx, g.who, id)
	if err != nil {
		return nil, err
	}
	src, ok := sourceOf(info)
	if !ok || src.Keep == nil {
		return nil, journal.ErrNoRun
	}
	return src.Keep, nil
}

func (g gateway) Journal() journal.Journal { return tenantJournal{server: g.Server, who: g.who} }

func (g gateway) Cancel(ctx context.Context, id string) error {
	info, err := g.permitted(ctx, id)
	if err != nil {
		return err
	}
	if err = g.stop(ctx, info); err != nil {
		g.cfg.Log.Warn("a run could not be canceled", "run", info.ID, "error", err) // the client may have gone
	}
	return err
}

func (g gateway) Remove(ctx context.Context, id string) error {
	info, err := g.permitted(ctx, id)
	if err != nil {
		return err
	}
	return g.cfg.Journal.Remove(ctx, info.ID)
}

// permitted returns a run that the caller may cancel and remove.
func (g gateway) permitted(ctx context.Context, id string) (info journal.RunInfo, err error) {
	if info, err = g.owned(ctx, g.who, id); err != nil {
		return info, err
	}
	return info, g.permit(info.Pipeline)
}
