package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/batches"
	"github.com/stonelayer/stone/internal/marked"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// policy is the type of stone.Config.Policy.
type policy = marked.Policy

// sender is the type of batch.Part.
type sender = *batches.Sender

// Config configures a Server. Only Journal is required.
type Config struct {
	// Journal stores the runs. Several servers may share a journal.
	Journal journal.Journal
	// Pipelines are the pipelines to publish.
	Pipelines []Pipeline
	// Applicator answers capability requests. If nil, the server has no capabilities.
	Applicator *call.Applicator
	// Embedder answers requests to the route /v1/embeddings of package x/gateway. Grant and Limits apply to these requests as to
	// capability requests. If Embedder is nil, the route returns an error.
	Embedder llm.Embedder
	// Grant lists the effects that capability requests may have. Nil grants none.
	Grant []string
	// Policy restricts, in all runs, the effects of a step depending on the nodes that it reads. Nil means no restriction.
	Policy policy
	// Limits are the spending limits of each capability request.
	Limits budget.Limits
	// Budgets limit the total spending of several runs, in all processes that share the Journal. Capability requests are charged
	// to the budgets of a pipeline named "act".
	Budgets []budget.Rule
	// Live names pipelines and intents. The gateway streams their answers while a model is still writing them, before checks have
	// accepted them. If an answer is rejected after a client has received a part of it, the run is canceled with the failure
	// "retracted". Unknown names are logged.
	Live []string
	// IgnoreTools names tool types, such as web_search, that some clients always send. The gateway removes these tools from
	// requests. It refuses requests with any other tool that none of its models can run.
	IgnoreTools []string
	// Access identifies callers. If nil, anyone who can reach the server may do everything.
	Access Access
	// Hosts are the host names by which the server can be reached. Requests to other hosts are refused, which prevents DNS
	// rebinding. Empty means localhost and every IP address.
	Hosts []string
	// Design adds a page /design that shows the components of the pages.
	Design bool
	// Mounts adds other protocols to the server. The keys are http.ServeMux patterns. The server checks the host, the origin, the
	// caller and the caller's rate limit before it calls a mounted handler.
	Mounts map[string]Mount
	// Protocols adds protocols, such as ui.Part of package x/ui. Their callers are checked in the same way as callers of the API.
	Protocols []Protocol
	// Batches sends the model requests of a run in batches, if the run requests it. Use batch.Part of package x/batch. If Batches
	// is nil, runs that request batches are refused.
	Batches sender
	// Webhooks receive notices about the runs that this server starts.
	Webhooks []Webhook
	// URL is the address of the server's pages for people, such as "https://stone.example.com". If it is set, a notice about a
	// question contains the address of the page on which to answer the question.
	URL string
	// Adopt is called for a waiting run that another program has started, once its questions have been answered. It returns the
	// name of the published pipeline with which the server continues the run, or "" if the server must not continue it. If the
	// run's pipeline differs from the published pipeline, the server leaves the run unchanged. If Adopt is nil, the server
	// continues no such runs.
	Adopt func(journal.RunInfo) string
	// Streams is the maximum number of event streams, watched lists and waits for results that a caller may have open, if its
	// Principal sets no limit. Zero means 100.
	Streams int
	// Scan is the interval at which the server searches the journal for runs that can continue. Zero means 5 s.
	Scan time.Duration
	// Grace is how long running steps may continue when the server shuts down. Zero means 30 s.
	Grace time.Duration
	// Base returns the context from which the context of a run inherits its values, such as the prices of models (see package
	// budget). Canceling it does not cancel runs. If Base is nil, context.Background is used.
	Base func() context.Context
	// Watch returns a watcher for a run, or nil. It is called each time this process starts or continues a run of a pipeline or a
	// capability request. The argument has the ID, Pipeline, Labels, Account and Source of the run, if the journal knows them.
	// The ID is empty for a capability request whose answer is not stored.
	Watch func(journal.RunInfo) event.Watcher
	// Log receives errors that are not part of any reply. Nil means slog.Default.
	Log *slog.Logger
}

// A Protocol adds a protocol to a Server. It is implemented by packages below x; an example is ui.Part of package x/ui.
type Protocol interface {
	Part()            // makes the protocol usable as a part of a program; see cli.Part
	Protocol() string // the command that serves one client of the protocol, such as mcp; "" if there is none
}

// Pipeline is a published pipeline.
type Pipeline struct {
	Name        string // name in requests; if empty, the name of the Ashlar
	Description string
	Result      string // type of the node that is the result of a run; if empty, the result is the run's last node
	Ashlar      stone.Ashlar
	Grant       []string      // effects that the pipeline's runs may have; nil means all
	Limits      budget.Limits // spending limits of each run
}

// A Server publishes pipelines. It is an http.Handler.
type Server struct {
	cfg       Config
	pipelines map[string]*Pipeline
	further   map[string]*Pipeline                   // pipelines of protocols, by name
	roles     map[string]func() map[string]turn.Role // roles of the leaves, by pipeline
	protocols []protocol.Protocol
	extras    []extra                             // extras applied to every run
	waits     map[string]func(*http.Request) bool // by pattern; see waits
	handler   http.Handler
	inner     http.Handler // handler that As uses
	drain     chan struct{}
	ending    sync.Once
	rates     rates
	meters    *meters
	health    *health
	tries     tries
	sessions  sessions
	died      abandoner // nil if the journal cannot find runs whose process has died
	outbox    *outbox
	places    *places // limits concurrent reads

	mu        sync.Mutex
	active    map[string]*active    // runs of this process
	feeds     map[feedKey]*feed     // feeds of runs that clients stream
	lists     map[feedKey]*watched  // lists that clients are watching
	asked     map[string]askedCount // counts of open questions, by tenant
	streams   int                   // open streams, including waits
	streamsOf map[caller]int
	running   sync.WaitGroup
}

// pipelineName matches names of pipelines, which become part of paths and tool names.
var pipelineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// New returns a server. It returns an error if the Config is invalid, for example if pipelines are invalid, have no name or share
// a name.
func New(cfg Config) (*Server, error) {
	if cfg.Journal == nil {
		return nil, errors.New("serve: Config.Journal is nil: open one, as with sqlite.Open")
	}
	if err := budget.Check(shared(cfg.Budgets)); err != nil {
		return nil, fmt.Errorf("serve: Config.Budgets: %w", err)
	}
	cfg.Scan, cfg.Grace = cmp.Or(cfg.Scan, 5*time.Second), cmp.Or(cfg.Grace, 30*time.Second)
	if cfg.Base == nil {
		cfg.Base = context.Background
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	m := newMeters()
	abandoned, _ := cfg.Journal.(abandoner)
	well := &health{log: cfg.Log}
	cfg.Journal = timed{Journal: cfg.Journal, meters: m, health: well, queued: &queued{runs: map[string]*unsettled{}}}
	s := &Server{cfg: cfg, meters: m, health: well, died: abandoned, pipelines: map[string]*Pipeline{}, further: map[string]*Pipeline{}, waits: maps.Clone(waits), roles: map[string]func() map[string]turn.Role{}, drain: make(chan struct{}), active: map[string]*active{}, feeds: map[feedKey]*feed{}, lists: map[feedKey]*watched{}, asked: map[string]askedCount{}, places: newPlaces(readPlaces()), streamsOf: map[caller]int{}}
	for _, p := range cfg.Protocols {
		made, ok := p.(protocol.Protocol)
		if !ok {
			return nil, fmt.Errorf("serve: Config.Protocols has a %T: want one of a package below x, such as ui.Part", p)
		}
		for _, r := range made.Routes {
			if slices.ContainsFunc(s.protocols, func(p protocol.Protocol) bool {
				return slices.ContainsFunc(p.Routes, func(other protocol.Route) bool { return other.Pattern == r.Pattern })
			}) {
				return nil, fmt.Errorf("serve: two of Config.Protocols serve %s: leave one out", r.Pattern)
			}
			if r.Waits != nil {
				s.waits[r.Pattern] = r.Waits
			}
		}
		s.protocols = append(s.protocols, made)
	}
	for _, p := range cfg.Pipelines {
		if err := s.publish(p); err != nil {
			return nil, err
		}
	}
	s.warnOfNoDescription()
	s.outbox = newOutbox(s, s.cfg.Journal.(timed).Journal)
	if err := s.addWebhooks(cfg.Webhooks); err != nil {
		return nil, err
	}
	s.extras = s.surrounding()
	s.addProtocolPipelines()
	for _, name := range cfg.Live {
		if s.pipeline(name) == nil {
			cfg.Log.Warn("the gateway has no model with a name of Live: check the name", "model", name)
		}
	}
	var err error
	if s.handler, err = s.routes(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) publish(p Pipeline) error {
	p.Name = cmp.Or(p.Name, p.Ashlar.Name())
	switch {
	case !pipelineName.MatchString(p.Name):
		return fmt.Errorf("serve: a pipeline has the name %q: want up to 64 of a-z, A-Z, 0-9, \".\", \"-\" and \"_\", a letter or digit first", p.Name)
	case s.pipelines[p.Name] != nil:
		return fmt.Errorf("serve: two pipelines have the name %q: give one of them another Name", p.Name)
	}
	given := stone.Config{Grant: p.Grant, Policy: s.cfg.Policy}.Given()
	given.Unattended = false
	for _, q := range p.Ashlar.QueriesAll() {
		if t := q.Type(); t != nil {
			given.Input = append(given.Input, t)
		}
	}
	if err := stone.Validate(p.Ashlar, given).Err(); err != nil {
		return fmt.Errorf("serve: pipeline %q: %w", p.Name, err)
	}
	if names := guessed(p.Ashlar); len(names) > 0 {
		s.cfg.Log.Warn("a pipeline has tools or capabilities that state no effects, so that clients are told that it may do anything: declare them, as with tool.Effects(\"net\"), or tool.Effects() for none",
			"code", "undeclared-effect", "pipeline", p.Name, "undeclared", strings.Join(names, ", "))
	}
	s.roles[p.Name] = sync.OnceValue(func() map[string]turn.Role { return roles(&p) })
	s.pipelines[p.Name] = &p
	return nil
}

// warnOfNoDescription logs which pipelines have no description, if the server has mounts: models see only the names of these
// pipelines.
func (s *Server) warnOfNoDescription() {
	var names []string
	for _, p := range s.published() {
		if p.Description == "" && p.Ashlar.Description() == "" {
			names = append(names, p.Name)
		}
	}
	if len(names) > 0 && len(s.cfg.Mounts) > 0 {
		s.cfg.Log.Warn("pipelines have no description, by which models choose among them: add one, as with Ashlar.Describe", "code", "no-description", "pipelines", strings.Join(names, ", "))
	}
}

// guessed returns the tools and capabilities of a pipeline that do not declare their effects. Steps without declared effects are
// not included.
func guessed(a stone.Ashlar) (names []string) {
	if undeclared := a.Detail().Undeclared; undeclared != nil {
		names = undeclared(func(stone.Ashlar) []string { return nil })
	}
	for _, c := range a.Children() {
		for _, name := range guessed(c) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// published returns the pipelines, sorted by name.
func (s *Server) published() []*Pipeline {
	var all []*Pipeline
	for _, p := range s.pipelines {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Pipeline) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// similar returns the name of a published pipeline that is similar to name, or "" if there is none.
func (s *Server) similar(name string) string {
	return suggest.Closest(name, func(yield func(string) bool) {
		for _, p := range s.published() {
			if !yield(p.Name) {
				return
			}
		}
	})
}

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := "req_" + strings.ToLower(rand.Text())
	r.Header.Set(requestID, id) // used when a failure is logged
	w.Header().Set(requestID, id)
	s.handler.ServeHTTP(w, r)
}

// requestID is the header that identifies a request in its reply and in the log.
const requestID = "X-Request-Id"

// Run resumes runs that no process is executing, until ctx is done. Then it drains the server: requests are answered with
// "unavailable", no new steps start, and running steps have Config.Grace to finish. Run returns when all runs of this process
// have stopped.
func (s *Server) Run(ctx context.Context) {
	abandoned := s.abandoned(ctx)
	if len(s.outbox.hooks)+len(s.outbox.protocols) > 0 {
		s.running.Go(func() { s.outbox.run(ctx) })
	}
	ticks := time.NewTicker(s.cfg.Scan)
	defer ticks.Stop()
	due := time.Now() // time of the last search for due questions; the search is rare, because it reads the texts of questions
	for search := true; ; {
		if search {
			if now := time.Now(); now.Sub(due) >= time.Minute {
				if err := journal.Expire(ctx, s.cfg.Journal, now); err != nil && ctx.Err() == nil {
					s.cfg.Log.Error("answer the questions that are due", "error", err)
				}
				due = now
			}
			runs, err := journal.Resumable(ctx, s.cfg.Journal)
			if err != nil && ctx.Err() == nil {
				s.cfg.Log.Error("search the journal for unfinished runs", "error", err)
			}
			s.resumeDue(ctx, runs...)
			if err := s.look(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Log.Error("search the journal for runs that wait for batches", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			s.Close()
			return
		case <-ticks.C:
			search = true
		case info, ok := <-abandoned:
			if search = false; !ok {
				abandoned = nil // closed: ctx is done
				continue
			}
			s.resumeDue(ctx, info)
		}
	}
}

// Close drains the server in the same way as Run and returns when all runs of this process have stopped.
func (s *Server) Close() {
	s.ending.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.drain)
	})
	s.running.Wait()
}

// closing reports whether the server is draining.
func (s *Server) closing() bool {
	select {
	case <-s.drain:
		return true
	default:
		return false
	}
}
