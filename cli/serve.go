package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/cli/internal/publish"
	"github.com/stonelayer/stone/cli/internal/token"
	"github.com/stonelayer/stone/internal/regular"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/plan"
)

// serveFlags holds the values of serve's flags.
type serveFlags struct {
	address  string
	wait     time.Duration
	insecure bool
	hosts    []string
	design   bool
	models   bool
	log      choice
}

// publishedArgs describes the arguments of serve, mcp and acp in their help.
const publishedArgs = "\n\nEach PIPELINE is a Go package, by directory or import path, a plan, by the name of its .edn or .json file, or\nan intent or capability to talk with, as :chat/answer. One package may take ARGs."

func (a *app) serve(c *cobra.Command) {
	var flags serveFlags
	c.RunE = func(c *cobra.Command, args []string) error { return a.serveAll(c, args, flags) }
	f := c.Flags()
	f.String(packageFlag, "", "")
	f.Lookup(packageFlag).Hidden = true
	f.StringVar(&flags.address, "address", "127.0.0.1:8080", "listen on `HOST:PORT`")
	f.BoolVar(&flags.insecure, "insecure", false, "require no tokens: everyone who can reach the address may do everything")
	f.StringSliceVar(&flags.hosts, "host", nil, "accept requests for this `NAME` of the server, in place of localhost and IP addresses")
	modelsFlag(f, &flags.models)
	a.tokensFlag(f)
	a.dbFlag(f)
	flags.log = choice{"text", []string{"text", "json"}}
	choiceFlag(c, &flags.log, "log", "the format of the lines on standard error")
	f.DurationVar(&flags.wait, "wait", time.Minute, "at startup, wait this long for a database that does not answer, such as `30s`")
	f.BoolVar(&flags.design, "design", false, "also show the page components at /design, for developers of the pages")
	a.graceFlag(f)
	a.trustFlag(f)
	a.accessFlags(f)
	budgetFlags(f, &a.calls.budget)
}

func (a *app) serveAll(c *cobra.Command, args []string, flags serveFlags) error {
	tokens, first, err := a.callers(flags)
	if err != nil {
		return err
	}
	say, log := a.complain, slog.Handler(nil) // the server uses its own text handler
	if flags.log.value == "json" {
		log = slog.NewJSONHandler(cleaned{a}, nil)
		say = func(format string, args ...any) { slog.New(log).Info(fmt.Sprintf(format, args...)) }
	}
	return a.withPublished(c, args, func(all []publish.Pipeline) error {
		cfg := publish.Config{Pipelines: all, Tokens: tokens, First: first, Open: flags.insecure, Hosts: flags.hosts, Design: flags.design, Models: flags.models, Protocols: a.linked.protocols,
			Warn: func(line string) { say("%s", line) }, Log: log}
		return a.publish(c, flags.wait, cfg, func(ctx context.Context, cfg publish.Config) (err error) {
			if cfg.Listener, err = listen(flags.address); err != nil {
				return err
			}
			cfg.Ready = func() {
				var names []string
				for _, p := range cfg.Pipelines {
					names = append(names, cmp.Or(p.Name, p.Ashlar.Name()))
				}
				with := ""
				if len(names) > 0 {
					with = " with " + strings.Join(names, ", ")
				}
				say("serving http://%s%s%s", cfg.Listener.Addr(), signIn("/", first), with)
				switch {
				case cfg.Open:
					say("--insecure: everyone who can reach this address may read, start, cancel and answer all runs and call every capability, including other users and all programs of this machine, even a confined command with a network")
				case first != "":
					say("this token is valid until the server stops or another token is created: create one with %q", a.Name+" token create")
				}
			}
			return a.linked.server.Serve(ctx, cfg)
		})
	})
}

// cleaned writes to standard error, with secrets of the configuration removed.
type cleaned struct{ *app }

func (c cleaned) Write(line []byte) (int, error) {
	if _, err := io.WriteString(c.Stderr, c.secrets.Clean(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

// signIn returns the part of an address that signs a browser in: the path and, if there is one, the token.
func signIn(path, token string) string {
	if token == "" {
		return strings.TrimSuffix(path, "/")
	}
	return path + "?token=" + token
}

// withPublished calls serve with the pipelines named by the arguments: in this process or, if it does not link them, in a program
// that does.
func (a *app) withPublished(c *cobra.Command, args []string, serve func([]publish.Pipeline) error) (err error) {
	before, after := args, []string(nil)
	if n := c.ArgsLenAtDash(); n >= 0 {
		before, after = args[:n], args[n:]
	}
	if !a.fromArgument() && len(before) > 0 {
		return fmt.Errorf("unexpected argument %q: arguments of the pipeline follow --", before[0])
	}
	if a.fromArgument() && len(before) == 0 {
		if before, err = a.ownPipeline(c); err != nil {
			return err
		}
	}
	if a.fromArgument() && len(before) == 1 && !isPlan(before[0]) && !isIntent(before[0]) {
		return a.build(c, before, after)
	}
	if a.fromArgument() && len(after) > 0 {
		return errors.New("arguments after -- belong to the pipeline of one package: name no other PIPELINE")
	}
	var packages []string // absolute directories of packages to link
	for _, p := range before {
		if isPlan(p) || isIntent(p) {
			continue
		}
		if p, err = linkName(p); err != nil {
			return err
		}
		packages = append(packages, p)
	}
	if err := a.relinked(c, packages...); err != nil {
		return err
	}
	defer a.closeCalls()
	if err := a.consentToConfig(); err != nil {
		return err
	}
	all, err := a.published(before, after)
	if err != nil {
		return err
	}
	if f := c.Flags().Lookup(packageFlag); f != nil && !a.fromArgument() {
		before = []string{f.Value.String()}
	}
	a.adopts = func(info journal.RunInfo) string { return adopted(info, all, before, after) }
	return serve(all)
}

// adopted returns the name of the published pipeline that continues a run which a command started: the command must have run the
// same pipeline in this directory, with the same arguments and budget and without flags.
func adopted(info journal.RunInfo, all []publish.Pipeline, names, args []string) string {
	from, ok := readSource(info)
	here, err := os.Getwd()
	if !ok || err != nil || from.Dir != here || from.command() != "run" || len(from.Flags) > 0 || !slices.Equal(from.Args, args) {
		return ""
	}
	for i, p := range all {
		was, err1 := linkName(from.Pipeline)
		now, err2 := linkName(names[i])
		if err1 == nil && err2 == nil && was == now && slices.Equal(from.Budget, budgetLine(p.Limits)) {
			return cmp.Or(p.Name, p.Ashlar.Name())
		}
	}
	return ""
}

// callers opens the file with the server's tokens. If the file does not exist, it also returns a new first token, unless everyone
// may do everything.
func (a *app) callers(flags serveFlags) (tokens *token.File, first string, err error) {
	if _, _, err := net.SplitHostPort(flags.address); err != nil {
		return nil, "", fmt.Errorf("--address %q: want HOST:PORT, such as 127.0.0.1:8080", flags.address)
	}
	if tokens, err = a.openTokens(); err != nil {
		return nil, "", err
	}
	exist, err := tokens.Exists(time.Now())
	switch {
	case err != nil:
		return nil, "", err
	case exist && flags.insecure:
		return nil, "", fmt.Errorf("--insecure ignores the tokens in %s: remove that file, or drop --insecure", tokens.Name())
	case !exist && !flags.insecure:
		first = token.Secret()
	}
	return tokens, first, nil
}

// linkName returns the name under which a package is linked as a pipeline of the server.
func linkName(pipeline string) (string, error) {
	if info, err := os.Stat(pipeline); err != nil || !info.IsDir() {
		return pipeline, nil
	}
	return filepath.Abs(pipeline)
}

// published returns the pipelines named by the arguments or, if there are none, the program's own pipeline.
func (a *app) published(pipelines, args []string) (all []publish.Pipeline, err error) {
	if !a.fromArgument() {
		p, err := pipeline(a.Pipeline, args)
		if err != nil {
			return nil, err
		}
		return []publish.Pipeline{{Ashlar: p}}, nil
	}
	for _, name := range pipelines {
		one, err := a.publishedFrom(name)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// publishedFrom returns the pipeline of a plan, an intent, a capability, or a linked package.
func (a *app) publishedFrom(name string) (p publish.Pipeline, err error) {
	if isPlan(name) {
		return a.publishedPlan(name)
	}
	if isIntent(name) {
		p.Name = strings.ReplaceAll(strings.TrimPrefix(name, ":"), "/", "-")
		p.Grant = []string{} // publish then uses the configured grant
		p.Description = about(a.calls.conf.App, name)
		p.Ashlar, err = a.answering(a.calls.conf.App, name)
		return p, err
	}
	link, err := linkName(name)
	if err != nil {
		return p, err
	}
	p.Ashlar, err = a.linked.kinds.Provided(link)(nil)
	return p, err
}

func (a *app) publishedPlan(file string) (p publish.Pipeline, err error) {
	data, err := regular.Read(file, regular.Config)
	if err != nil {
		return p, err
	}
	program, err := plan.Read(data)
	if err != nil {
		return p, fmt.Errorf("%s: %w", file, err)
	}
	conf := a.calls.conf
	opts := plan.Options{Limits: conf.Plan.Limits, Mode: conf.Plan.Mode}
	p.Result = terms.Emit
	base := filepath.Base(file)
	p.Name = cmp.Or(program.ID(), base[:len(base)-len(filepath.Ext(base))])
	if p.Ashlar, err = openPlan(program, conf.App, &opts); err != nil {
		return p, fmt.Errorf("%s: %w", file, err)
	}
	p.Description = aboutPlan(conf.App, p.Name, p.Ashlar)
	return p, nil
}

// waitedFor opens a database and returns it. If the database does not answer, waitedFor tries again for a while, because a server
// and its database may be started together.
func (a *app) waitedFor(ctx context.Context, wait time.Duration) (*store, error) {
	const pause = 500 * time.Millisecond
	for start, said := time.Now(), false; ; said = true {
		s, err := a.newStore(ctx, "")
		if !errors.Is(err, journal.ErrUnavailable) || time.Since(start) >= wait {
			return s, err
		}
		if !said {
			a.complain("waiting for the database: %v", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// publish calls serve with a server's configuration and a context that ends when a signal arrives. If the database does not
// answer, publish waits for it.
func (a *app) publish(c *cobra.Command, wait time.Duration, cfg publish.Config, serve func(context.Context, publish.Config) error) error {
	if err := a.fillApplicator(c.Flags().Changed("max-usd")); err != nil {
		return err
	}
	k := &a.calls
	conf, err := a.configured()
	if err != nil {
		return err
	}
	k.limit()
	cfg.Applicator, cfg.Grant, cfg.Policy, cfg.Limits, cfg.Live = conf.App, conf.Grant(k.grant), conf.Policy, k.limits, conf.Live
	cfg.Embedder, cfg.Batches = conf.Search.Embedder, a.linked.batches
	cfg.Grace = a.grace
	cfg.IgnoreTools, cfg.Budgets, cfg.URL, cfg.Adopt = conf.IgnoreTools, conf.Budgets, conf.URL, a.adopts
	for i, p := range cfg.Pipelines {
		cfg.Pipelines[i].Limits, cfg.Pipelines[i].Grant = k.limits, k.granted(p.Ashlar)
		if p.Result == terms.Emit || p.Grant != nil {
			cfg.Pipelines[i].Grant = cfg.Grant
		}
	}
	cfg.Limits.Roundtrips = cmp.Or(k.limits.Roundtrips, new(cmp.Or(conf.Plan.Limits.Roundtrips, plan.DefaultRoundtrips)))
	for _, w := range conf.Webhooks {
		secrets, err := w.Secrets()
		if err != nil {
			return err
		}
		a.secrets.Note(secrets...)
		cfg.Webhooks = append(cfg.Webhooks, publish.Webhook{Name: w.Name, URL: w.URL, Secrets: secrets, Pipelines: w.Pipelines, Tenant: w.Tenant, Private: w.Private})
	}
	if cfg.Watch, err = a.watching(); err != nil {
		return err
	}
	s, err := a.waitedFor(c.Context(), wait)
	if err != nil {
		return err
	}
	cfg.Journal = s.Store
	base := llm.WithTable(c.Context(), k.table)
	cfg.Base = func() context.Context { return base }
	if cfg.Warn == nil {
		cfg.Warn = func(line string) { a.complain("%s", line) }
	}
	ctx, drain, stop := drainable(c.Context(), cfg.Warn, a.Name+" "+c.Name())
	defer stop()
	cfg.Drain = drain
	err = serve(ctx, cfg)
	if closed := s.Close(); closed != nil {
		err = errors.Join(err, closed)
	}
	if err != nil {
		return failed("%w", err)
	}
	return nil
}
