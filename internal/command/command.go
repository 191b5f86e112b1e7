// Package command is the interface between package cli and parts with commands, such as x/eval/commands. The table of package cli
// has the commands' arguments and help.
package command

import (
	"context"
	"io"

	"github.com/spf13/pflag"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/cases"
	"github.com/stonelayer/stone/internal/stores"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/plan"
)

// Commands are the commands of a part, by their path in the table. Each call makes a new one, because a process may run several
// command lines.
type Commands map[string]func() Command

// Part makes Commands a part of a program, see cli.Part.
func (Commands) Part() {}

// A Command works on a PIPELINE: it builds another pipeline around it, performs that as a run, and prints the result. Every such
// command has the flags for the configuration, the budget, trust and the journal, and --quiet and --json.
type Command struct {
	OnlyPlans bool   // the PIPELINE must be a plan: programs with their own pipeline lack the command
	JSON      string // describes the output of --json
	Wire      bool   // has the flags that record requests, replay them, or send them in batches
	Events    bool   // has the flags --dag and --trace
	// Flags adds the flags that determine the pipeline. They are kept with the run, for resuming it.
	Flags func(*pflag.FlagSet)
	// Files adds the flags that name files to write. May be nil.
	Files func(*pflag.FlagSet)
	// Check checks the command line. It returns the slots of a plan that the command fills, or nil for all open ones.
	Check func(args []string, set *pflag.FlagSet) (slots []string, err error)
	// Run executes the command. Errors count as wrong usage, except an [Exit] and those of the Host.
	Run func(context.Context, *Host) error
}

// An Exit ends the command with a code. Without an error, everything has been printed.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string { return e.Err.Error() }

// A Host is the program that runs a command.
type Host struct {
	Argument   string // PIPELINE as typed, "" for a program with its own
	Pipeline   stone.Ashlar
	Plan       *plan.Plan // of the PIPELINE, nil if it is none
	Compile    func(*plan.Plan) (stone.Ashlar, error)
	Applicator *call.Applicator // of the configuration
	Config     stone.Config     // of the run
	Granted    []string         // by --grant
	Cases      cases.Of         // nil for none

	Unrecorded bool   // --no-db
	Replay     string // file that answers the requests
	Quiet      bool
	Progress   io.Writer // for a progress display
	Live       bool      // Progress is a terminal

	// Complain prints a line to standard error.
	Complain func(format string, args ...any)
	// Print prints a result: text, or v as JSON.
	Print func(v any, text string) error
	// Journal calls do with the journal of the command line. If there is none yet, the error matches fs.ErrNotExist.
	Journal func(ctx context.Context, do func(Journal) error) error
	// Perform runs a pipeline and prints how it ended.
	Perform func(context.Context, Task) error
	// Then executes another command line of this program, with the named flags as they are set here, and with what is left of the
	// budget in ctx. It ends the run's calls.
	Then func(ctx context.Context, line []string, flags ...string) error
}

// A Journal keeps runs.
type Journal interface {
	stores.Store
	// Named returns the run with a name: an id, a prefix of one, or "last".
	Named(ctx context.Context, name string) (journal.RunInfo, error)
}

// A Task is a pipeline to run.
type Task struct {
	Pipeline stone.Ashlar
	Name     string // in lists
	Labels   map[string]string
	Reuse    bool          // reuse results of any run, unless the command line names one
	Watch    event.Watcher // shows the progress
	// Print prints the result of a run that has one. Run is nil if the run is not recorded.
	Print func(result stone.Result, run *Run) error
}

// A Run is a recorded run.
type Run struct {
	Journal
	ID      string
	Resumed bool
	// Command returns a command line for the run's journal, for a person to type.
	Command func(words ...string) string
}
