// Package command is the interface between package cli and parts that provide commands, such as x/eval/commands. The arguments and
// the help of these commands are in a table in package cli.
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

// Commands maps the paths of a part's commands in the table to functions that create the commands. Each call creates a new
// Command, because a process may run several command lines.
type Commands map[string]func() Command

// Part makes Commands usable as a part of a program; see cli.Part.
func (Commands) Part() {}

// A Command is a command that a part provides. It works on a PIPELINE: it builds another pipeline around that pipeline, runs it,
// and prints the result. Every such command has --quiet, --json, and the flags for the configuration, the budget, trust and the
// journal. A command that reads recorded runs instead has --json and the flags that select runs.
type Command struct {
	JSON string // describes the output of --json
	// Runs is a verb for the help of the flags that select runs, such as "count". It says what the command does with recorded
	// runs. Such a command uses only Runs, JSON and Run.
	Runs string

	OnlyPlans bool // the PIPELINE must be a plan; programs with their own pipeline do not have the command
	Wire      bool // has the flags that record requests, replay them, or send them in batches
	Events    bool // has the flags --dag and --trace
	// Flags adds the flags that affect which pipeline is run. They are recorded with the run, so that it can be resumed.
	Flags func(*pflag.FlagSet)
	// Files adds the flags for files to write. It may be nil.
	Files func(*pflag.FlagSet)
	// Check returns an error if the command line is invalid. Otherwise, it returns the names of the plan's slots that the command
	// fills, or nil if it fills all open slots.
	Check func(args []string, set *pflag.FlagSet) (slots []string, err error)
	// Run executes the command. All errors count as incorrect usage, except an [Exit] and errors returned by the Host.
	Run func(context.Context, *Host) error
}

// An Exit is an error that ends the command with an exit code. If it contains no error, nothing more is printed.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string { return e.Err.Error() }

// A Host gives a command access to the program that runs it.
type Host struct {
	// For all commands. Complain prints a message to standard error. Print prints a result: text, or v with --json.
	Complain func(format string, args ...any)
	Print    func(v any, text string) error

	// For a command that reads runs. Chosen calls do for each run that the flags select. It returns the number of runs and whether
	// a limit omitted any. Table formats rows for the terminal; the first row has the names of the columns.
	JSON     bool
	Database string // as shown to users
	Chosen   func(ctx context.Context, do func(journal.Journal, journal.RunInfo) error) (n int, more bool, err error)
	Table    func(rows [][]string) string

	// For a command that works on a pipeline.
	Argument   string // PIPELINE as typed; "" for a program with its own pipeline
	Pipeline   stone.Ashlar
	Plan       *plan.Plan // plan in PIPELINE; nil if PIPELINE is not a plan
	Compile    func(*plan.Plan) (stone.Ashlar, error)
	Applicator *call.Applicator // applicator of the configuration
	Config     stone.Config     // Config for the run
	Granted    []string         // effects granted with --grant
	Cases      cases.Of         // nil if recorded cases are not available

	Unrecorded bool   // --no-db is set
	Replay     string // file from which requests are answered
	Quiet      bool
	Progress   io.Writer // for a progress display
	Live       bool      // whether Progress writes to a terminal

	// Journal calls do with the journal that the command line selects. If the journal does not exist yet, the error matches
	// fs.ErrNotExist.
	Journal func(ctx context.Context, do func(Journal) error) error
	// Perform runs a pipeline and prints how it ended.
	Perform func(context.Context, Task) error
	// Then executes another command line of this program, with the named flags set as in this command, and with the rest of the
	// budget in ctx. It first ends ctx and stops the programs that the configuration has started.
	Then func(ctx context.Context, line []string, flags ...string) error
}

// A Journal is a journal with the additional methods that commands need.
type Journal interface {
	stores.Store
	// Named returns the run that name selects. The name is an ID, a prefix of an ID, or "last".
	Named(ctx context.Context, name string) (journal.RunInfo, error)
}

// A Task is a pipeline to run.
type Task struct {
	Pipeline stone.Ashlar
	Name     string // name of the run in lists
	Labels   map[string]string
	Reuse    bool          // reuse results of all recorded runs, unless the command line names a run
	Watch    event.Watcher // shows the progress
	// Print prints the result of a run that has one. Run is nil if the run is not recorded.
	Print func(result stone.Result, run *Run) error
}

// A Run is a recorded run.
type Run struct {
	Journal
	ID      string
	Resumed bool
	// Command returns a command line for the run's journal that a person can type.
	Command func(words ...string) string
}
