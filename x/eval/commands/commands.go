// Package commands provides the commands eval, eval tune and eval improve for a program:
//
//	func main() { cli.Main(Pipeline, commands.Part) }
package commands

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/command"
	"github.com/stonelayer/stone/x/eval"
)

// Part provides the commands.
var Part = command.Commands{"eval": evaluating, "eval tune": tuning, "eval improve": improving}

// Exit codes as defined in package cli.
const (
	failedCode     = 1
	gateFailedCode = 4
	cannotTellCode = 5
)

// failed returns an error that does not count as wrong usage.
func failed(format string, args ...any) error {
	return &command.Exit{Code: failedCode, Err: fmt.Errorf(format, args...)}
}

// dataFlags adds the flags that select a data set. The argument use says, in their help texts, what the data set is for.
func dataFlags(f *pflag.FlagSet, to *eval.Data, use string) {
	f.StringVar(&to.File, "data", "", use+" `FILE`, JSON Lines or CSV")
	f.StringVar(&to.Expected, "expected", "", "`COLUMN` with the expected output (default expected)")
	f.StringVar(&to.Cluster, "cluster", "", "`COLUMN` that groups cases that are not independent")
}

// counts returns an error for flags that set a count and are less than 1.
func counts(f *pflag.FlagSet) error {
	for _, name := range []string{"n", "trials", "lanes", "rounds", "shown"} {
		if f := f.Lookup(name); f != nil && f.Changed {
			if n, err := strconv.Atoi(f.Value.String()); err == nil && n < 1 {
				return fmt.Errorf("--%s %d: want 1 or more, or leave the flag out", name, n)
			}
		}
	}
	return nil
}

// columns returns the columns of a data set, which provide slots of a plan.
func columns(data eval.Data, missing string) ([]string, error) {
	if data.File == "" {
		return nil, errors.New("--data is missing: name a file of JSON Lines or CSV" + missing)
	}
	names, err := data.Columns()
	if err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	return append([]string{}, names...), nil
}

// measure runs an evaluation of any kind and shows its progress, on a single line if live is set. If there is a result, it is
// passed to print.
func measure(ctx context.Context, h *command.Host, t command.Task, live bool, print func(*dag.Node, dag.DAG, *command.Run) error) error {
	if !h.Quiet {
		shown := &evalProgress{account: budget.From(ctx), out: h.Progress, live: live, began: time.Now()}
		defer shown.close()
		t.Watch = eval.Watch(t.Pipeline, shown.show)
	}
	t.Print = func(result stone.Result, run *command.Run) error { return print(result.Node, result.DAG, run) }
	return h.Perform(ctx, t)
}

// counted returns a context with an account, from which the progress line reads the cost so far.
func counted(ctx context.Context) context.Context {
	if budget.From(ctx) != nil {
		return ctx
	}
	return budget.With(ctx, budget.New(budget.Limits{}))
}

// scorer returns the scorer that spec, the value of the flag --score, describes. It is an error if spec describes several.
func scorer(app *call.Applicator, spec string) (eval.Scorer, error) {
	all, err := eval.Read(app, spec)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d scorers: give one, whose mean is maximized", len(all))
	}
	if err != nil {
		return eval.Scorer{}, fmt.Errorf("--score: %w", err)
	}
	return all[0], nil
}
