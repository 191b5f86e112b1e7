package serve

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/talk"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// addProtocolPipelines adds the pipelines that protocols publish.
func (s *Server) addProtocolPipelines() {
	for _, p := range s.protocols {
		if p.Pipelines == nil {
			continue
		}
		for name, a := range p.Pipelines(s.cfg.Applicator) { // a nil Grant of a Pipeline allows all
			s.further[name] = &Pipeline{Name: name, Ashlar: a, Grant: append([]string{}, s.cfg.Grant...), Limits: s.cfg.Limits}
		}
	}
}

// pipeline returns the pipeline with this name, published here or by a protocol, or nil.
func (s *Server) pipeline(name string) *Pipeline { return cmp.Or(s.pipelines[name], s.further[name]) }

// A guest gives a protocol access to the server on behalf of a caller.
type guest struct {
	s   *Server
	who Principal
}

var _ protocol.Caller = guest{}

func (g guest) Tenant() string           { return g.who.Tenant }
func (g guest) By() string               { return g.who.by() }
func (g guest) Journal() journal.Journal { return tenantJournal{server: g.s, who: g.who} }

func (g guest) Needs(role string) error {
	if g.who.may(Role(role)) {
		return nil
	}
	return lacking(Role(role))
}

func (g guest) Pipeline(name string) (talk.Model, error) {
	p := g.s.pipelines[name]
	if p == nil {
		return talk.Model{}, g.s.noPipeline(name)
	}
	return talk.Model{Name: p.Name, Ashlar: p.Ashlar}, nil
}

func (g guest) Models() (all []talk.Model) {
	for _, p := range g.s.published() {
		all = append(all, talk.Model{Name: p.Name, Ashlar: p.Ashlar})
	}
	if g.who.may(Act) {
		for name, p := range g.s.further {
			if g.s.pipelines[name] == nil {
				all = append(all, talk.Model{Name: p.Name, Ashlar: p.Ashlar})
			}
		}
	}
	slices.SortFunc(all, func(a, b talk.Model) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (g guest) Settings() protocol.Settings {
	return protocol.Settings{Live: g.s.cfg.Live, IgnoreTools: g.s.cfg.IgnoreTools, Embedder: g.s.cfg.Embedder}
}

func (g guest) Log() *slog.Logger { return g.s.cfg.Log }

func (g guest) Runs(ctx context.Context, q journal.Query) iter.Seq2[journal.RunInfo, error] {
	return each(ctx, g.Journal(), q)
}

// known returns a run with the journal's ID in place of the caller's.
func (g guest) known(info journal.RunInfo) journal.RunInfo {
	info.ID = keyOf(g.who, info.ID)
	return info
}

func (g guest) named(info journal.RunInfo) journal.RunInfo {
	info.ID = nameOf(g.who, info.ID)
	return info
}

func (g guest) Start(ctx context.Context, id string, run protocol.Run) (journal.RunInfo, error) {
	p := g.s.pipeline(run.Pipeline)
	if p == nil {
		return journal.RunInfo{}, g.s.noPipeline(run.Pipeline)
	}
	info, _, err := g.s.startOf(ctx, g.who, p, id, run)
	return g.named(info), err
}

func (g guest) Resume(ctx context.Context, id string, how api.Resume) error {
	info, err := g.s.owned(ctx, g.who, id)
	if err != nil {
		return err
	}
	return g.s.restart(ctx, g.who, info, how)
}

func (g guest) Cancel(ctx context.Context, id string) error {
	info, err := g.s.owned(ctx, g.who, id)
	if err != nil {
		return err
	}
	return g.s.stop(ctx, info)
}

func (g guest) Remove(ctx context.Context, id string) error {
	return g.s.cfg.Journal.Remove(ctx, keyOf(g.who, id))
}

func (g guest) Kept(ctx context.Context, id string) ([]byte, error) {
	info, err := g.s.owned(ctx, g.who, id)
	if err != nil {
		return nil, err
	}
	src, ok := sourceOf(info)
	if !ok || src.Keep == nil {
		return nil, journal.ErrNoRun
	}
	return src.Keep, nil
}

func (g guest) Watchers(id string) []event.Watcher {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	if run := g.s.active[keyOf(g.who, id)]; run != nil {
		return run.watchers
	}
	return nil
}

func (g guest) Ask(r *http.Request, app *call.Applicator, envelope []byte) (call.Response, error) {
	return g.s.ask(r, g.who, app, envelope)
}

func (g guest) Answer(ctx context.Context, id, by string, a api.Answer) error {
	info, err := g.s.owned(ctx, g.who, id)
	if err != nil {
		return err
	}
	who := g.who
	who.By = by
	return g.s.answer(ctx, who, info, a)
}

func (g guest) Withdraw(ctx context.Context, id, path string) error {
	err := journal.Answer(ctx, g.s.cfg.Journal, keyOf(g.who, id), path, ask.Answer{By: g.who.by()})
	if errors.Is(err, journal.ErrNoQuestion) {
		return nil // the question has been answered meanwhile
	}
	return err
}

func (g guest) Describe(info journal.RunInfo) api.Run { return run(g.who, g.known(info)) }

func (g guest) Going(info journal.RunInfo) bool {
	return goesOn(info.State) || g.s.runs(keyOf(g.who, info.ID))
}

func (g guest) Settled(ctx context.Context, info journal.RunInfo) (journal.RunInfo, error) {
	info, err := g.s.settled(ctx, g.known(info))
	return g.named(info), err
}

func (g guest) Await(ctx context.Context, info journal.RunInfo) (api.Run, error) {
	return g.s.await(ctx, g.who, g.known(info))
}

func (g guest) Watch(ctx context.Context, info journal.RunInfo, wait func(<-chan struct{}) bool, tell func([]turn.Part)) (api.Run, []turn.Part, error) {
	return g.s.hear(ctx, g.who, g.known(info), wait, tell)
}

func (g guest) Said(ctx context.Context, info journal.RunInfo) (api.Run, []turn.Part, []turn.Cut, error) {
	ended, parts, cuts, err := g.s.heard(ctx, g.who, g.known(info), nil)
	ended.Result = bareOf(ended.Result)
	return ended, parts, cuts, err
}

func (g guest) Drain() <-chan struct{} { return g.s.drain }

func (g guest) Closing() error {
	if g.s.closing() {
		return closing()
	}
	return nil
}

func (g guest) Hold() (leave func(), err error) { return g.s.hold(g.who) }

func (g guest) Place(ctx context.Context) (leave func(), err error) {
	return g.s.read(ctx, g.who.Tenant)
}

func (g guest) Stream(w http.ResponseWriter, r *http.Request) protocol.Stream {
	return stream{newEventStream(w), newPulse(g.s, r, g.who)}
}

func (g guest) Problem(r *http.Request, err error) *api.Problem { return g.s.problemOf(r, err) }

// stream is a protocol's reply in the form of server-sent events.
type stream struct {
	out *eventStream
	pulse
}

func (s stream) Send(events ...[]byte) {
	for _, e := range events {
		s.out.write(e)
	}
	s.out.send()
}

func (s stream) Wait(news <-chan struct{}) bool { return s.wait(s.out, news, nil) && s.out.err == nil }
func (s stream) Close()                         { s.stop() }
