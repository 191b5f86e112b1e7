package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/publish"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/tree"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	address  string
	db       string
	grace    time.Duration
	insecure bool
}

func (a *app) serve() *cobra.Command {
	var flags serveFlags
	c := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Publish pipelines over HTTP",
		Long: "Serve publishes pipelines over HTTP. Their runs are durable: they are kept in .stone/stone.db of the\n" +
			"project, and after a restart they go on. SIGTERM lets running steps finish. Capabilities of the\n" +
			"configuration answer requests too.",
		Example:               a.example("serve ./triage", "serve ./triage plan.edn --address 127.0.0.1:8080"),
		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, args []string) error { return a.serveAll(c, args, flags) },
	}
	if a.fromArgument() {
		c.Use = "serve [flags] [PIPELINE…] [-- ARG…]"
		c.Long += "\n\nEach PIPELINE is a Go package, by directory or import path, or a plan, by the name of its .edn or .json file.\nOne package may take ARGs."
	} else {
		c.Use = "serve [flags] [-- ARG…]"
	}
	f := c.Flags()
	f.StringVar(&flags.address, "address", "127.0.0.1:8080", "listen on `HOST:PORT`")
	f.BoolVar(&flags.insecure, "insecure", false, "listen on an address that others reach, although everyone may do everything")
	dbFlag(f, &flags.db)
	graceFlag(f, &flags.grace)
	a.trustFlag(f)
	a.callFlags(f)
	return c
}

func (a *app) serveAll(c *cobra.Command, args []string, flags serveFlags) error {
	before, after := args, []string(nil)
	if n := c.ArgsLenAtDash(); n >= 0 {
		before, after = args[:n], args[n:]
	}
	if err := reachable(flags.address, flags.insecure); err != nil {
		return err
	}
	if !a.fromArgument() && len(before) > 0 {
		return fmt.Errorf("unexpected argument %q: arguments of the pipeline follow --", before[0])
	}
	if a.fromArgument() && len(before) == 0 {
		var err error
		if before, err = a.ownPipeline(c); err != nil {
			return err
		}
	}
	if a.fromArgument() && len(before) == 1 && !isPlan(before[0]) {
		return a.build(c, before, after)
	}
	if a.fromArgument() && len(after) > 0 {
		return errors.New("arguments after -- belong to the pipeline of one package: name no other PIPELINE")
	}
	packages, err := a.packagesOf(before)
	if err != nil {
		return err
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
	return a.publish(c, all, flags)
}

// reachable refuses an address at which others than the user of this machine reach the
// server.
func reachable(address string, insecure bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--address %q: want HOST:PORT, as 127.0.0.1:8080", address)
	}
	ip := net.ParseIP(host)
	if insecure || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("--address %s: others reach that address, and nobody is asked who they are: listen on 127.0.0.1, or allow it with --insecure", address)
}

// packagesOf returns the packages among pipelines, as they are linked: directories in full.
func (a *app) packagesOf(pipelines []string) (packages []string, err error) {
	for _, p := range pipelines {
		if isPlan(p) {
			continue
		}
		if p, err = linkName(p); err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// linkName is the name under which a package is linked as a pipeline of the server.
func linkName(pipeline string) (string, error) {
	if info, err := os.Stat(pipeline); err != nil || !info.IsDir() {
		return pipeline, nil
	}
	return filepath.Abs(pipeline)
}

// published makes the pipelines: those of the arguments, or that of the program.
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

// publishedFrom makes the pipeline of a plan, or of a package that is linked.
func (a *app) publishedFrom(name string) (p publish.Pipeline, err error) {
	if isPlan(name) {
		return a.publishedPlan(name)
	}
	link, err := linkName(name)
	if err != nil {
		return p, err
	}
	p.Ashlar, err = kinds.Provided(link)(nil)
	return p, err
}

func (a *app) publishedPlan(file string) (p publish.Pipeline, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return p, err
	}
	program, err := plan.Read(data)
	if err != nil {
		return p, fmt.Errorf("%s: %w", file, err)
	}
	conf := a.calls.conf
	opts := plan.Options{Limits: conf.Plan.Limits, Mode: conf.Plan.Mode}
	p.Result = call.EmitType
	base := filepath.Base(file)
	p.Name = cmp.Or(program.ID(), base[:len(base)-len(filepath.Ext(base))])
	if p.Ashlar, err = program.Ashlar(conf.App, opts); err != nil {
		return p, fmt.Errorf("%s: %w", file, err)
	}
	// Expressions may use the slots that a run begins with.
	for _, in := range tree.Inputs(p.Ashlar) {
		opts.Slots = append(opts.Slots, in.Type.Name())
	}
	p.Ashlar, err = program.Ashlar(conf.App, opts)
	return p, err
}

// publish serves the pipelines until a signal ends it.
func (a *app) publish(c *cobra.Command, all []publish.Pipeline, flags serveFlags) error {
	if err := a.fillApplicator(c.Flags().Changed("max-usd")); err != nil {
		return err
	}
	k := &a.calls
	conf, err := a.configured()
	if err != nil {
		return err
	}
	if err := k.limit(c.Flags()); err != nil {
		return err
	}
	for i, p := range all {
		all[i].Limits, all[i].Grant = k.limits, k.granted(p.Ashlar)
		if p.Result == call.EmitType {
			all[i].Grant = conf.Grant(k.grant)
		}
	}
	s, err := a.newStore(c.Context(), flags.db, "")
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", flags.address)
	if err != nil {
		return errors.Join(failed("%w", err), s.Close())
	}
	limits := k.limits
	limits.Roundtrips = cmp.Or(limits.Roundtrips, conf.Plan.Limits.Roundtrips, plan.DefaultRoundtrips)
	base := llm.WithTable(c.Context(), k.table)
	a.complain("serving http://%s", listener.Addr())
	ctx, drain, stop := interruptible(c.Context(), func(line string) { a.complain("%s", line) }, a.Name+" serve")
	defer stop()
	err = publish.Serve(ctx, publish.Config{
		Listener: listener, Journal: s.Store, Pipelines: all, Applicator: conf.App, Grant: conf.Grant(k.grant), Limits: limits,
		Base: func() context.Context { return base }, Grace: flags.grace, Drain: drain, Warn: func(line string) { a.complain("%s", line) },
	})
	if closed := s.Close(); closed != nil {
		err = errors.Join(err, closed)
	}
	if err != nil {
		return failed("%w", err)
	}
	return nil
}
