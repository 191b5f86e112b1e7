package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/respond"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/plan"
)

// actFlags are the flags of act.
type actFlags struct {
	edn, json bool
	stream    bool
	partial   bool
	trace     string
	keep      keepFlags
}

func (a *app) act() *cobra.Command {
	var flags actFlags
	c := &cobra.Command{
		Use:   "act [flags] [FILE]",
		Short: "Answer a request with a configured capability",
		Long: "Act reads the envelope of a request, in EDN or JSON, from a file or from standard input. It routes\n" +
			"the request to a configured capability and prints the envelope of the response in the same notation.\n" +
			"It records the run like the command run. A request that was answered before gets the recorded answer,\n" +
			"and no capability is asked; a request that failed is tried again. The exit code is 1 if the response\n" +
			"is an error, also for a request that cannot be read.",
		Example:               a.example("act request.edn", "act --stream < request.json"),
		DisableFlagsInUseLine: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("unexpected argument %q: %s takes one FILE, or - for standard input", args[1], c.CommandPath())
			}
			return nil
		},
		PreRunE: func(c *cobra.Command, _ []string) error { return flags.keep.check(c.Flags()) },
		RunE: func(c *cobra.Command, args []string) error {
			file := "-"
			if len(args) == 1 {
				file = args[0]
			}
			return a.answerRequest(c, file, flags)
		},
	}
	f := c.Flags()
	f.BoolVar(&flags.edn, "edn", false, "print the response in EDN")
	f.BoolVar(&flags.json, "json", false, "print the response in JSON")
	f.BoolVar(&flags.stream, "stream", false, streamHelp)
	f.BoolVar(&flags.partial, "partial", false, partialHelp)
	f.StringVar(&flags.trace, "trace", "", "append the events of the call to `FILE`, at the level in STONE_LOG_LEVEL (info)")
	dbFlag(f, &flags.keep.db)
	f.BoolVar(&flags.keep.none, "no-db", false, "do not record the answer, and ask although one is recorded")
	f.StringVar(&flags.keep.id, "id", "", "`NAME` of the run for other commands; the id of the request by default")
	a.trustFlag(f)
	c.MarkFlagsMutuallyExclusive("edn", "json")
	a.callFlags(f)
	return c
}

func (a *app) answerRequest(c *cobra.Command, file string, flags actFlags) error {
	// First of all, since another program would read the request.
	if err := a.relinked(c); err != nil {
		return err
	}
	if flags.partial && !flags.stream {
		return errPartial
	}
	data, err := a.readRequest(file)
	if err != nil {
		return err
	}
	conf := a.calls.conf
	defer a.closeCalls()
	if err := a.consentToConfig(); err != nil {
		return err
	}
	if err := a.fillApplicator(false); err != nil {
		return err
	}
	if conf.Budget.Roundtrips == nil { // a request from outside is never unlimited
		conf.Budget.Roundtrips = new(cmp.Or(conf.Plan.Limits.Roundtrips, plan.DefaultRoundtrips))
	}
	ctx, err := a.calls.spending(c.Context(), c.Flags())
	if err != nil {
		return err
	}
	events, err := openTrace(flags.trace)
	if err != nil {
		return err
	}
	out := &respond.Stream{W: a.Stdout, EDN: flags.edn || !flags.json && filepath.Ext(file) != ".json" && !respond.IsJSON(data)}
	if flags.partial {
		out.WithValues()
	}
	resp := a.respond(ctx, conf.App, data, events, out, flags)
	if err := errors.Join(out.Respond(resp), events.close()); err != nil {
		return output(err)
	}
	if resp.Err != nil {
		return &exitError{code: Failed} // the response says why
	}
	return nil
}

func (a *app) readRequest(file string) ([]byte, error) {
	in := a.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("no request file %s", file)
		} else if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	// A longer request is rejected by its reader.
	data, err := io.ReadAll(io.LimitReader(in, call.MaxEnvelope+1))
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return data, nil
}

// respond answers a request.
func (a *app) respond(ctx context.Context, app *call.Applicator, data []byte, events *traceFile, out *respond.Stream, flags actFlags) (resp call.Response) {
	trace, spec, err := call.ReadRequest(data)
	if err != nil {
		return call.Response{Trace: respond.TraceIn(data), Err: err}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends the process
	cfg := stone.Config{Grant: a.calls.conf.Grant(a.calls.grant), Recorder: journal.Redact()}
	if events != nil {
		cfg.Watch = events.writer
	}
	if flags.stream {
		cfg.Watch = event.All(cfg.Watch, out)
	}
	if err := app.CheckRequest(spec); err != nil {
		return call.Response{Trace: trace, Err: err} // nothing of it is kept
	}
	if flags.keep.none {
		if err := a.uncounted(); err != nil {
			return call.Response{Trace: trace, Err: err}
		}
	} else {
		kept, recorded, err := a.keepRequest(ctx, flags.keep, trace, spec.Intent, data, &cfg)
		if err != nil {
			return call.Response{Trace: trace, Err: err}
		}
		defer func() {
			if recorded && resp.Reply != nil {
				resp.Reply.Usage.Mode = llm.Replay
			}
			if err := kept.Close(); err != nil && resp.Err == nil {
				resp = call.Response{Trace: trace, Err: err}
			}
		}()
	}
	watch, err := a.watching()
	if err != nil {
		return call.Response{Trace: trace, Err: err}
	}
	cfg.Watch = event.All(cfg.Watch, watch(journal.RunInfo{ID: cfg.RunID, Pipeline: "act"}))
	resp, _ = app.Act(ctx, trace, spec, cfg)
	if e, ok := resp.Err.(*call.Error); ok && e.Cause != nil && strings.HasPrefix(e.Cause.Error(), call.ForbiddenEffect) {
		for _, effect := range spec.Effects {
			if why := a.calls.conf.Denied(effect); why != "" {
				e.Message += "; " + why
			}
		}
	}
	return resp
}
