// Package serve provides the server of the command. With its part, cli.Main has the sub-command serve and, together with the
// parts of packages x/mcp/server and x/acp, the sub-commands mcp and acp. The sub-commands run and chat then also accept the
// names of intents and capabilities.
//
//	func main() { cli.Main(Pipeline, serve.Part) }
package serve

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/cli/internal/publish"
	"github.com/stonelayer/stone/cli/internal/token"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/inside"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

// Part adds the server to a program.
var Part = &publish.Server{Serve: run, Client: serveClient, HTML: serve.WriteHTML, Chat: chat}

// A Protocol is a part that adds another protocol to the server of a program.
type Protocol = inside.Protocol

// Options are the settings from the command line that concern the clients of a protocol.
type Options = inside.Options

// closeTime is the time for which open requests may continue when the server stops. Streams are closed at once.
const closeTime = 5 * time.Second

func run(ctx context.Context, cfg publish.Config) error {
	of := configOf(cfg)
	of.Access, of.Hosts, of.Design = bearer{cfg.Tokens, cfg.First, cfg.Open}, cfg.Hosts, cfg.Design
	if cfg.Inspect {
		of.Access = inspector{cfg.First, cfg.By, cfg.Answer}
	} else {
		of.Mounts, of.Live = map[string]serve.Mount{}, cfg.Live
		of.IgnoreTools, of.Embedder = cfg.IgnoreTools, cfg.Embedder
		for _, p := range cfg.Protocols {
			switch p := p.(type) {
			case Protocol:
				if p.Mounts != nil {
					maps.Copy(of.Mounts, p.Mounts(optionsOf(cfg)))
				}
			case serve.Protocol:
				of.Protocols = append(of.Protocols, p)
			}
		}
	}
	s, err := serve.New(of)
	if err != nil {
		return errors.Join(err, cfg.Listener.Close())
	}
	if cfg.Ready != nil {
		cfg.Ready()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-cfg.Drain:
			cancel()
		case <-ctx.Done():
		}
	}()
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	bound(server)
	failed := make(chan error, 1)
	go func() {
		failed <- server.Serve(cfg.Listener)
		cancel()
	}()
	if cfg.Inspect {
		<-ctx.Done()
		s.Close()
	} else {
		s.Run(ctx) // Run returns when the server's runs have stopped
	}
	over, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	if err := server.Shutdown(over); err != nil {
		_ = server.Close() // requests that take longer are aborted
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// configOf returns the part of the server's configuration that all protocols need.
func configOf(cfg publish.Config) serve.Config {
	of := serve.Config{
		Journal: cfg.Journal, Applicator: cfg.Applicator, Grant: cfg.Grant, Policy: cfg.Policy, Batches: cfg.Batches, Limits: cfg.Limits, Budgets: cfg.Budgets, Base: cfg.Base, Grace: cfg.Grace, Watch: cfg.Watch,
		URL: cfg.URL, Adopt: cfg.Adopt,
	}
	if of.Log = slog.New(warner{cfg.Warn}); cfg.Log != nil {
		of.Log = slog.New(cfg.Log)
	}
	for _, w := range cfg.Webhooks {
		of.Webhooks = append(of.Webhooks, serve.Webhook(w))
	}
	for _, p := range cfg.Pipelines {
		of.Pipelines = append(of.Pipelines, serve.Pipeline(p))
	}
	return of
}

func optionsOf(cfg publish.Config) Options { return Options{By: cfg.By, ModelMayAnswer: cfg.Models} }

// serveClient serves the client of a command. When the server is drained, the client's pending calls return the states of their
// runs.
func serveClient(ctx context.Context, command string, cfg publish.Config, in io.Reader, out io.Writer) error {
	for _, p := range cfg.Protocols {
		if p, ok := p.(Protocol); ok && p.Command == command {
			return serveOne(ctx, cfg, func(ctx context.Context, s *serve.Server) error {
				return p.Client(ctx, s, optionsOf(cfg), in, out)
			})
		}
	}
	return fmt.Errorf("no protocol has the command %s", command)
}

// serveOne starts a server and calls client with it. The server's runs continue until client returns.
func serveOne(ctx context.Context, cfg publish.Config, client func(context.Context, *serve.Server) error) error {
	s, err := serve.New(configOf(cfg))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running, drain := context.WithCancel(ctx)
	go func() {
		select {
		case <-cfg.Drain:
			drain()
		case <-running.Done():
		}
	}()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.Run(running)
		cancel()
	}()
	err = client(ctx, s)
	drain()
	<-drained
	return err
}

// An inspector allows the holder of a token to read and, if configured, to answer questions.
type inspector struct {
	token, by string
	answers   bool
}

func (i inspector) Principal(r *http.Request) (who serve.Principal, err error) {
	secret, err := secretOf(r)
	if err != nil {
		return who, err
	}
	if !same(secret, i.token) {
		return who, errUnknown
	}
	who = serve.Principal{By: i.by, Roles: []serve.Role{serve.Read}}
	if i.answers {
		who.Roles = append(who.Roles, serve.Answer)
	}
	return who, nil
}

var errUnknown = errors.New("the token is unknown, revoked or expired")

// secretOf returns the token in a request's Authorization header, or an error if there is none.
func secretOf(r *http.Request) (string, error) {
	kind, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if secret = strings.TrimSpace(secret); !strings.EqualFold(kind, "Bearer") || secret == "" {
		return "", errors.New("the request has no token: send \"Authorization: Bearer TOKEN\"")
	}
	return secret, nil
}

// same compares two secrets in constant time. An empty secret never matches.
func same(secret, want string) bool {
	return want != "" && subtle.ConstantTimeCompare([]byte(secret), []byte(want)) == 1
}

// bearer admits callers with a token. If no token has ever been created, it admits the holder of the first token or, if open is
// set, everyone.
type bearer struct {
	tokens *token.File
	first  string
	open   bool
}

func (b bearer) Principal(r *http.Request) (who serve.Principal, err error) {
	exist, err := b.tokens.Exists(time.Now())
	if err == nil && !exist && b.open {
		return who, nil
	}
	secret, missing := secretOf(r)
	if missing != nil {
		return who, missing
	}
	if err == nil && !exist && same(secret, b.first) {
		return serve.Principal{By: "the token of the start", Interactive: true}, nil
	}
	t, ok, err := b.tokens.Find(secret, time.Now())
	if err != nil {
		return who, &api.Problem{Type: problems.Internal, Title: "Internal Server Error", Status: http.StatusInternalServerError, Detail: "the tokens cannot be read"}
	}
	if !ok {
		return who, errUnknown
	}
	who = serve.Principal{Name: t.Name, By: "token " + t.Name, Roles: []serve.Role{}, // nil would mean all
		Tenant: t.Tenant, Grant: t.Grant, Limits: t.Limits, PerMinute: t.Minute, Runs: t.Runs, Streams: t.Streams, Interactive: t.Interactive, USDADay: t.USDADay}
	for _, r := range t.Roles {
		who.Roles = append(who.Roles, serve.Role(r))
	}
	return who, nil
}

// warner is a log handler that writes each record on one line.
type warner struct{ say func(string) }

func (w warner) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (w warner) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w warner) WithGroup(string) slog.Handler                    { return w }

func (w warner) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	if !r.Time.IsZero() {
		line.WriteString(r.Time.UTC().Format("2006-01-02T15:04:05Z "))
	}
	line.WriteString(r.Level.String() + " " + r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&line, " %s=%v", a.Key, a.Value)
		return true
	})
	w.say(line.String())
	return nil
}

// Node types of a pipeline that answers messages.
var (
	message = dag.NewType[string]("message")
	answer  = dag.NewType[agent.Text]("answer")
)

// chat implements [publish.Server].Chat.
func chat(name string, app *call.Applicator, spec call.Spec) stone.Ashlar {
	return agent.New(name, answer, call.Model(app, spec), agent.Config{Conversation: agent.ConversationOf(answer), User: message})
}
