package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"

	"github.com/spf13/pflag"

	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/transport"
	"github.com/stonelayer/stone/llm/script"
)

// wireFlags holds the values of the flags that record model requests, replay them, or send them in batches.
type wireFlags struct {
	record, replay string // names of files
	batch, noWait  bool
}

// describe adds the flags.
func (w *wireFlags) describe(f *pflag.FlagSet) {
	f.StringVar(&w.record, "record", "", "record the requests to models and http capabilities, and the answers, in `FILE`")
	f.StringVar(&w.replay, "replay", "", "answer requests to models and http capabilities from `FILE`, written by --record; nothing is sent, and no key is needed")
	f.BoolVar(&w.batch, "batch", false, "send model requests in provider batches: answers within a day, for half the price")
	f.BoolVar(&w.noWait, "no-wait", false, "with --batch, do not wait for the batches; resume checks them again")
	noted(f, makesPipeline, "replay", "batch", "no-wait")
	noted(f, namesFile, "record")
}

// open returns a context in which requests are recorded or replayed, and a function that closes the recording. During a replay,
// the default HTTP transport does not open connections either, because Go pipelines and tool servers may use it without the run's
// context.
func (w *wireFlags) open(ctx context.Context) (context.Context, func() error, error) {
	none := func() error { return nil }
	switch {
	case w.noWait && !w.batch:
		return ctx, none, errors.New("--no-wait needs --batch: add it, or drop --no-wait")
	case w.batch && (w.record != "" || w.replay != ""):
		return ctx, none, errors.New("--batch cannot be combined with --record or --replay: use one")
	case w.record != "" && w.replay != "":
		return ctx, none, errors.New("--record and --replay cannot be combined: use one")
	case w.record != "":
		rec, err := script.Record(w.record, nil)
		if err != nil {
			return ctx, none, err
		}
		return transport.With(ctx, rec.Over), rec.Close, nil
	case w.replay != "":
		player, err := script.Replay(w.replay)
		if err != nil {
			return ctx, none, err
		}
		before := http.DefaultTransport
		http.DefaultTransport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("nothing is sent while a recording is replayed")
		}}
		return transport.With(ctx, func(http.RoundTripper) http.RoundTripper { return player }), func() error {
			http.DefaultTransport = before
			return nil
		}, nil
	}
	return ctx, none, nil
}

// withoutKeys sets missing model keys to a placeholder during a replay, which does not need them.
func (a *app) withoutKeys(w wireFlags) error {
	if w.replay == "" {
		return nil
	}
	names := config.KeyEnvs()
	conf, err := a.configured()
	if err != nil {
		return err
	}
	for _, s := range conf.Secrets {
		names = append(names, s.Env)
	}
	for _, name := range names {
		if name != "" && os.Getenv(name) == "" {
			if err := os.Setenv(name, "not-needed-to-replay"); err != nil {
				return err
			}
		}
	}
	return nil
}
