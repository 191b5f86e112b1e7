package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/batches"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/remote"
	"github.com/stonelayer/stone/internal/respond"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// aRun is the last paragraph in the help of every command that takes a RUN.
const aRun = "\n\nRUN is the name of a run, a unique prefix of it, or last for the newest run."

// runNames returns the names of the newest runs, for shell completion.
func (a *app) runNames(c *cobra.Command, _ []string, _ string) (names []string, how cobra.ShellCompDirective) {
	err := a.withStore(c.Context(), func(s *store) error {
		runs, err := s.Runs(c.Context(), journal.Query{})
		for _, r := range runs {
			names = append(names, cobra.CompletionWithDesc(r.ID, fmt.Sprintf("%s, %s", text.Line(r.Pipeline), r.State)))
		}
		return err
	})
	if err != nil {
		cobra.CompErrorln(err.Error())
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func (a *app) resume(c *cobra.Command) {
	var flags runFlags
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case args[0] != everyRun:
			return a.goOn(c, args[0])
		case c.Flags().Changed("again"), c.Flags().Changed("lost"):
			return errors.New("--again and --lost apply to one run: name it in place of all")
		}
		return a.resumeAll(c)
	}
	f := c.Flags()
	a.dbFlag(f)
	f.Bool("no-wait", false, "for a run with --batch, check the batches once and do not wait for them")
	f.Bool("force", false, "resume even if the pipeline changed; recorded steps are not repeated, new steps use the changed pipeline")
	f.Bool("check", false, "only report whether the run could continue with the current program; for CI")
	f.StringArray("again", nil, "repeat the recorded step or lane `STEP`, such as \"each[46]\", everything below it, and all steps that read its result; may be repeated")
	f.Bool("lost", false, "repeat the lost lanes, and the steps that read them")
	a.graceFlag(f)
	budgetFlags(f, new(budget.Limits)) // run reads these flags
	a.outputFlags(f, &flags)
	a.trustFlag(f)
}

func (a *app) cancel(c *cobra.Command) {
	c.RunE = func(c *cobra.Command, args []string) error { return a.cancelRun(c, args[0]) }
	a.dbFlag(c.Flags())
	a.trustFlag(c.Flags())
}

// cancelRun cancels a run. It needs the run's pipeline only if the run has batches at a provider or tasks at other agents.
func (a *app) cancelRun(c *cobra.Command, name string) error {
	tasks, made := []string(nil), false
	records := func(s *store) error {
		err := journal.Cancel(c.Context(), s.Store, name)
		if is, ok := errors.AsType[*journal.StateError](err); err != nil && !(ok && len(tasks) > 0 && is.State == journal.Canceled) { // the run ended while its tasks were being canceled
			return failed("%w", err)
		}
		a.complain("run %s is canceled", name)
		return nil
	}
	err := a.withStore(c.Context(), func(s *store) error {
		info, err := s.find(c.Context(), name)
		if err != nil {
			return err
		}
		name = info.ID // by then, "last" may name another run
		if made, err = batches.Made(c.Context(), s.Store, name); err == nil {
			tasks, err = remote.Tasks(c.Context(), s.Store, name)
		}
		switch {
		case err != nil:
			return failed("%w", err)
		case made || len(tasks) > 0:
			return nil
		}
		return records(s)
	})
	if err != nil || !made && len(tasks) == 0 {
		return err
	}
	if err = a.goOn(c, name, "--cancel", "--quiet"); err == nil || made {
		return err
	}
	if !errors.As(err, new(*exitError)) { // an exitError has already been printed
		a.complain("%v", err)
	}
	a.complain("its tasks at other agents continue")
	return a.withStore(c.Context(), records)
}

// everyRun is the name that makes resume continue all runs that can be resumed.
const everyRun = "all"

// resumeAll resumes all runs of this command that can continue, oldest first.
func (a *app) resumeAll(c *cobra.Command) error {
	var left []string
	others := 0
	check, err := c.Flags().GetBool("check")
	if err != nil {
		return err
	}
	err = a.withStore(c.Context(), func(s *store) error {
		if !check {
			if err := journal.Expire(c.Context(), s.Store, time.Now()); err != nil {
				return err
			}
		}
		runs, err := journal.Resumable(c.Context(), s.Store)
		if err == nil {
			var more []journal.RunInfo
			more, err = waiting(c.Context(), s, check)
			runs = append(runs, more...)
		}
		for _, r := range runs {
			if _, other := a.sourceOf(r); other != nil {
				others++
				continue
			}
			left = append(left, r.ID)
		}
		if err != nil {
			return failed("%w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if others > 0 && !check {
		a.complain("%s can be continued by the programs that started them", text.Plural(others, "other run"))
	}
	if len(left) == 0 && check {
		a.complain("no run is waiting or interrupted")
	} else if len(left) == 0 {
		a.complain("no run can continue: waiting runs need an answer, and failed runs must be resumed by name")
	}
	signals := make(chan os.Signal, 1) // the runs receive the signals, too
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	code := Done
	for i, id := range left {
		if elsewhere, err := a.running(c.Context(), id); err == nil && elsewhere {
			a.complain("run %s was continued by another process", id)
			continue
		}
		if err := a.goOn(c, id); err != nil {
			if is := a.exit(c, err); code == Done || is != Waiting {
				code = is
			}
		}
		if rest := len(left) - i - 1; len(signals) > 0 && rest > 0 {
			a.complain("stopped: %s left", text.Plural(rest, "run"))
			code = cmp.Or(code, Failed)
			break
		}
	}
	if code != Done {
		return &exitError{code: code}
	}
	return nil
}

// running reports whether another process has resumed the run since the list of runs was read.
func (a *app) running(ctx context.Context, id string) (is bool, err error) {
	err = a.withStore(ctx, func(s *store) error {
		info, err := s.Find(ctx, id)
		is = info.State == journal.Running || info.State == journal.Done
		return err
	})
	return is, err
}

// waiting returns the runs in state waiting. If people is false, it omits runs that are waiting for a person.
func waiting(ctx context.Context, s *store, people bool) (all []journal.RunInfo, err error) {
	for r, err := range s.each(ctx, journal.Query{States: []journal.State{journal.Waiting}, Asking: true}) {
		if err != nil {
			return nil, err
		}
		asked, err := s.Questions(ctx, r.ID)
		if err != nil {
			continue // the run is damaged; resuming it by name reports the damage
		}
		if people || !slices.ContainsFunc(asked, func(q journal.Question) bool { return q.Open() && q.Name != batches.Question }) {
			all = append(all, r)
		}
	}
	slices.Reverse(all)
	return all, nil
}

// goOn executes the recorded command line of a run again, with additional flags, in the directory in which the run was started.
func (a *app) goOn(c *cobra.Command, name string, more ...string) error {
	var line []string
	lost, _ := c.Flags().GetBool("lost") // false for a command without this flag
	var from source
	err := a.withStore(c.Context(), func(s *store) error {
		info, err := s.find(c.Context(), name)
		if err != nil {
			return err
		}
		if from, err = a.sourceOf(info); err != nil {
			return err
		}
		file := s.file
		if !redact.IsDatabase(file) {
			file, err = filepath.Abs(file)
		}
		line = append(strings.Fields(from.command()), "--resume="+file, "--id="+info.ID)
		if err != nil {
			return err
		}
		names, _ := c.Flags().GetStringArray("again") // none for a command without this flag
		again, err := a.again(c.Context(), s, info, names, lost)
		line = append(line, again...)
		return err
	})
	if err != nil {
		return err
	}
	return a.repeat(c, name, from, line, more...)
}

// repeat executes a command line with the recorded settings of a run, in the directory where the run was started.
func (a *app) repeat(c *cobra.Command, name string, from source, line []string, more ...string) error {
	if from.Pipeline != "" && a.fromArgument() {
		line = append(line, from.Pipeline)
	} else if from.Pipeline != "" {
		line = append(line, "--"+packageFlag+"="+from.Pipeline)
	}
	line = slices.Concat(line, from.Flags, from.Budget, fromAnywhere(c.Flags()), more, []string{"--"}, from.Args)
	here, err := os.Getwd()
	if err == nil {
		err = os.Chdir(from.Dir)
	}
	if err != nil {
		return failed("run %s was started in %s: %w", name, from.Dir, err)
	}
	return errors.Join(a.within(c.Context(), line), os.Chdir(here))
}

// fromAnywhere returns the flags that are set, with their values in a form that is valid in any directory.
func fromAnywhere(flags *pflag.FlagSet) []string {
	var line []string
	flags.Visit(func(f *pflag.Flag) {
		if f.Name == "again" || f.Name == "lost" || f.Annotations[ofFork] != nil { // these are passed as full addresses; see app.again and app.fork
			return
		}
		if path, err := filepath.Abs(f.Value.String()); err == nil && f.Annotations[namesFile] != nil && !redact.IsDatabase(f.Value.String()) && f.Value.String() != "" {
			line = append(line, "--"+f.Name+"="+path)
			return
		}
		line = append(line, typed(f)...)
	})
	return line
}

// sourceOf returns the command line recorded with a run.
func (a *app) sourceOf(info journal.RunInfo) (source, error) {
	from, ok := readSource(info)
	var request respond.Source
	switch {
	case json.Unmarshal(info.Source, &request) == nil && request.Request != "":
		return from, fmt.Errorf("run %s answers a request: send the request again with %s act", info.ID, a.Name)
	case !ok:
		return from, fmt.Errorf("run %s was not started by this command: resume it with the program that started it", info.ID)
	case a.fromArgument() && from.Pipeline == "":
		return from, fmt.Errorf("run %s was started by the program %s: resume it with that: %s resume %s", info.ID, from.Program, from.Program, info.ID)
	}
	return from, nil
}
