package batch

import (
	"context"
	"errors"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/batches"
	"github.com/stonelayer/stone/journal"
)

// Part lets programs that call cli.Main, and servers that set serve.Config.Batches, run pipelines in batches.
var Part = &batches.Sender{
	Run: func(ctx context.Context, p stone.Ashlar, run stone.Config, of batches.Config) (stone.Result, error) {
		return Run(ctx, p, run, configOf(of))
	},
	Cancel: func(ctx context.Context, p stone.Ashlar, run stone.Config, keep journal.Options, of batches.Config) error {
		return Cancel(ctx, p, run, keep, configOf(of))
	},
	Progress: func(err error) (string, bool) {
		waits, ok := errors.AsType[*WaitingError](err)
		if !ok {
			return "", false
		}
		return waits.Error(), true
	},
}

func configOf(of batches.Config) Config {
	cfg := Config{Journal: of.Journal, NoWait: of.NoWait, Drain: of.Drain}
	if of.Say != nil {
		said := ""
		cfg.Watch = func(all []Status) {
			if line := (&WaitingError{all}).Error(); line != said {
				said = line
				of.Say(line)
			}
		}
	}
	return cfg
}
