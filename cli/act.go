package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/respond"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/plan"
)

// actFlags holds the values of act's flags.
type actFlags struct {
	edn bool
	pieces
	trace string
	keep  keepFlags
}

func (a *app) act(c *cobra.Command) {
	var flags actFlags
	c.PreRunE = func(c *cobra.Command, _ []string) error { return a.checkKeep(&flags.keep, c.Flags()) }
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.answerRequest(c, cmp.Or(strings.Join(args, ""), "-"), flags)
	}
	f := c.Flags()
	f.BoolVar(&flags.edn, "edn", false, "print the response in EDN")
	a.jsonFlag(f, "the response in JSON")
	flags.describe(f, "")
	traceFlag(f, &flags.trace)
	a.dbFlag(f)
	f.BoolVar(&flags.keep.none, "no-db", false, "do not record the answer, and ignore a recorded one")
	f.StringVar(&flags.keep.id, "id", "", "use `NAME` as the name of the run; the request's id by default")
	a.trustFlag(f)
	c.MarkFlagsMutuallyExclusive("edn", "json")
	a.accessFlags(f)
	budgetFlags(f, &a.calls.budget)
}

func (a *app) answerRequest(c *cobra.Command, file string, flags actFlags) error {
	// This comes first, because a program that takes over must read the request itself.
	if err := a.relinked(c); err != nil {
		return err
	}
	if err := flags.check(); err != nil {
		return err
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
	if conf.Budget.Roundtrips == nil { // a request from outside must have a limit
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
	out := &respond.Stream{W: a.Stdout, EDN: flags.edn || !a.json && filepath.Ext(file) != ".json" && !respond.IsJSON(data)}
	if flags.partial {
		out.WithValues()
	}
	resp := a.respond(ctx, conf.App, data, events, out, flags)
	if err := errors.Join(out.Respond(resp), events.close()); err != nil {
		return output(err)
	}
	if resp.Err != nil {
		return &exitError{code: Failed} // the response contains the reason
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
	// One byte more than allowed, so that ReadRequest rejects a longer request.
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
	context.AfterFunc(ctx, stop) // after this, a second signal ends the process
	cfg := stone.Config{Grant: a.calls.conf.Grant(a.calls.grant), Policy: a.calls.base.Policy, Recorder: journal.Redact()}
	if events != nil {
		cfg.Watch = events.writer
	}
	if flags.stream {
		cfg.Watch = event.All(cfg.Watch, out)
	}
	if err := app.CheckRequest(spec); err != nil {
		return call.Response{Trace: trace, Err: err} // no run keeps this error
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
	if e, ok := resp.Err.(*call.Error); ok && e.Cause != nil && strings.HasPrefix(e.Cause.Error(), reasons.ForbiddenEffect) {
		for _, effect := range spec.Effects {
			if why := a.calls.conf.Denied(effect); why != "" {
				e.Message += "; " + why
			}
		}
	}
	return resp
}

// requestRun returns the ID of the run that answers a request. It consists of the trace's ID and, if there is one, the turn. If
// this is not a valid run name, requestRun returns a digest of it.
func requestRun(t call.Trace) string {
	id := t.ID
	if t.Turn > 0 {
		id += "-turn-" + strconv.Itoa(t.Turn)
	}
	if runName.MatchString(id) && id != youngest {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "request-" + hex.EncodeToString(sum[:8])
}

// keepRequest makes cfg record the request as a run. If the store already contains an answer to the same request, the run returns
// it without making a call, and recorded is true. The error is a *call.Error if the run answers a different request.
func (a *app) keepRequest(ctx context.Context, k keepFlags, trace call.Trace, intent string, data []byte, cfg *stone.Config) (s *store, recorded bool, err error) {
	if s, err = a.newStore(ctx, ""); err != nil {
		return nil, false, err
	}
	cfg.RunID = cmp.Or(k.id, requestRun(call.Trace{ID: a.secrets.Clean(trace.ID), Turn: trace.Turn}))
	keep := respond.Keep{
		Journal: s.Store, Run: cfg.RunID, Clean: a.secrets.Clean,
		Options: journal.Options{Labels: map[string]string{"intent": a.secrets.Clean(intent), "request": a.secrets.Clean(trace.ID)}},
		Used:    fmt.Sprintf("run %s in %s answers another request: use another request id, or name the run with --id", cfg.RunID, s.file),
	}
	if conf := a.calls.conf; conf != nil {
		keep.Options.Budgets = budget.Drawn(conf.Budgets, "act", keep.Options.Labels)
	}
	r, recorded, err := keep.Recorder(ctx, data)
	if err != nil {
		if closed := s.Close(); closed != nil {
			err = errors.Join(err, closed)
		}
		return nil, false, err
	}
	cfg.Recorder = r
	return s, recorded, nil
}
