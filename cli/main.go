package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/cli/internal/load"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/notice"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// Exit codes of the command.
const (
	Done    = 0 // success
	Failed  = 1 // the run failed or was interrupted, the pipeline is invalid, or the database cannot be used
	Usage   = 2 // wrong usage or configuration
	Waiting = 3 // the run waits for an answer: answer it and resume

	// The following are used by eval with a gate.
	GateFailed = 4 // the gate failed: one of its rules is violated
	CannotTell = 5 // there are too few cases, or too many errors, for a decision
)

// FromArgument takes the place of a pipeline in a program whose commands have a PIPELINE argument, such as the command stone. The
// argument names a Go package or a plan.
//
// Programs with one pipeline do not refer to FromArgument, so the linker omits the code that builds packages.
var FromArgument = fromArgument{load.Build, load.Command}

type fromArgument struct {
	build   func(context.Context, string, load.Linked) (load.Program, error)
	command func(context.Context, load.Linked) (load.Program, error)
}

// Config configures the command. If only Pipeline is set, the command uses the arguments, standard streams and working directory
// of this process.
type Config struct {
	// Pipeline is a stone.Ashlar, a func() stone.Ashlar, a func() (stone.Ashlar, error), a func(args []string) (stone.Ashlar,
	// error), or FromArgument. The args are the arguments after "--"; only the last function type accepts arguments.
	Pipeline any
	// Parts are extensions of the command; see Part.
	Parts []Part

	// Watch returns a watcher for the run that info describes, or nil for none. If the run is not recorded, only the Pipeline of
	// info is set.
	Watch func(journal.RunInfo) event.Watcher

	Name   string    // name of the program in messages; "" means the name of the process
	Args   []string  // nil means the arguments of the process
	Stdin  io.Reader // input, such as answers to questions; nil means os.Stdin
	Stdout io.Writer // results; nil means os.Stdout
	Stderr io.Writer // output other than results; nil means os.Stderr
}

// Main runs the command line of this process for the given pipeline, with the given parts, and exits with its exit code.
func Main(pipeline any, parts ...Part) {
	keepCrashes()
	os.Exit(Run(context.Background(), Config{Pipeline: pipeline, Parts: parts}))
}

// Run runs the command line that c describes and returns its exit code. When ctx is done, Run cancels a pipeline's run that is in
// progress. While a pipeline is running, Run handles SIGINT, SIGTERM and SIGHUP. The first signal cancels the run, except that
// SIGTERM drains a recorded run: running steps finish, and no new ones start. A second signal of the same kind ends the process.
func Run(ctx context.Context, cfg Config) int {
	a := newApp(cfg)
	if a.Args == nil {
		a.Args = os.Args[1:]
	}
	if a.Stdin == nil {
		a.Stdin = os.Stdin
	}
	if a.Stdout == nil {
		a.Stdout = os.Stdout
	}
	if a.Stderr == nil {
		a.Stderr = os.Stderr
	}
	a.Stdout, a.Stderr = shield(a.Stdout), shield(a.Stderr)
	if terminal(a.Stdin) != nil {
		ctx = llm.Interactive(ctx)
	}
	return a.main(ctx)
}

// main runs the command line and returns the exit code.
func (a *app) main(ctx context.Context) int {
	if a.linkFault != nil {
		return a.exit(nil, a.linkFault)
	}
	for _, name := range config.KeyEnvs() {
		a.secrets.Note(os.Getenv(name))
	}
	ctx = notice.With(ctx, func(line string) { a.complain("%s", line) })
	root := a.root()
	if len(a.Args) > 0 && homes[a.Args[0]] != nil { // flags, even --help, of a command that the program lacks belong to no other
		if c, _, _ := root.Find(a.Args[:1]); c == root {
			return a.exit(root, unknown(root, a.Args))
		}
	}
	cmd, err := root.ExecuteContextC(redact.With(ctx, &a.secrets))
	a.spans.close()
	return a.exit(cmd, err)
}

// Command returns the command with all of its sub-commands, for programs that generate completions or manual pages. Do not
// execute the returned command; use Run instead.
func Command(cfg Config) (*cobra.Command, error) {
	a := newApp(cfg)
	return a.root(), a.linkFault
}

// within executes a nested command line, which shares no configuration, grants or keys with the outer one.
func (a *app) within(ctx context.Context, line []string) error {
	b := newApp(a.Config)
	b.Args, b.trusting = line, a.trusting
	if code := b.main(ctx); code != Done {
		return &exitError{code: code}
	}
	return nil
}

func newApp(cfg Config) *app {
	a := &app{Config: cfg}
	a.Name = cmp.Or(cfg.Name, filepath.Base(os.Args[0]))
	a.linked, a.linkFault = link(cfg.Parts)
	return a
}

// An app is the state of one command-line execution.
type app struct {
	Config
	linked    linked
	linkFault error
	calls     calls
	spans     spans
	shown     func(path string) string // returns a path with lane labels; nil if no progress is shown
	secrets   redact.Set               // secrets of everything that is executed
	shared                             // values of shared flags
	trusting  bool                     // trust any project that is found; see consent
	adopts    func(journal.RunInfo) string
}

func (a *app) fromArgument() bool { _, ok := a.Pipeline.(fromArgument); return ok }

// exitError is an error that ends the command with an exit code. If it contains no error, the message has already been printed.
type exitError struct {
	code  int
	err   error
	lines bool // the message may have several lines
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// failed returns an error that ends the command with the exit code Failed.
func failed(format string, args ...any) error {
	return &exitError{code: Failed, err: fmt.Errorf(format, args...)}
}

// exit prints err and returns the exit code for it. An error without an exit code counts as wrong usage, unless a retry may
// succeed.
func (a *app) exit(cmd *cobra.Command, err error) int {
	if err == nil {
		return Done
	}
	var known *exitError
	if !errors.As(err, &known) {
		known = &exitError{code: Usage, err: err}
		if errors.Is(err, journal.ErrUnavailable) {
			known.code = Failed
		}
	}
	switch {
	case known.lines:
		fmt.Fprintln(a.Stderr, "Error: "+strings.Join(text.Lines(whenFull(a.secrets.Clean(known.Error()))), "\n"))
	case known.err != nil:
		a.complain("Error: %v", err)
	}
	for c := cmd; c != nil; c = c.Parent() {
		if known.code == Usage && c.Annotations[onlyFailed] != "" {
			return Failed
		}
	}
	return known.code
}

// complain writes a line to standard error.
func (a *app) complain(format string, args ...any) {
	fmt.Fprintln(a.Stderr, text.Line(whenFull(a.secrets.Clean(fmt.Sprintf(format, args...)))))
}

// whenFull returns err with advice added to its message if a write failed because the disk is full. If the message already
// contains advice, it returns err.
func whenFull(line string) string {
	for _, full := range []string{syscall.ENOSPC.Error(), "disk is full"} {
		if strings.Contains(line, full) && !strings.Contains(line, "free some space") {
			return line + ": the disk is full: free some space, then try again"
		}
	}
	return line
}

// onlyFailed marks commands that use only the exit codes Done and Failed.
const onlyFailed = "only-failed"
