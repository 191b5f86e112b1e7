package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/display"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/journal"
	"golang.org/x/term"
)

// terminalUI makes the command without a sub-command show a terminal UI, for the project around the working directory or for the
// program's pipeline. Without a terminal, or if the program does not link the screen, the help is shown.
func (a *app) terminalUI(root *cobra.Command) {
	if a.linked.screen == nil {
		root.Long = root.Short + ".\n\n" + "To show the pipeline on the whole screen, pass cli.Main the part of package github.com/stonelayer/stone/x/screen."
		root.Args = unknown
		root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		return
	}
	provider := choice{of: config.Protocols}
	f := root.Flags()
	choiceFlag(root, &provider, "provider", "`PROTOCOL` of the default model: "+strings.Join(config.Protocols, ", ")+"; overrides STONE_PROVIDER and the settings")
	model := f.String("model", "", "`NAME` of the default model; overrides STONE_MODEL and the settings")
	var k keepFlags
	a.addStoreFlags(root, &k)
	a.trustFlag(root.Flags())
	url := f.String("url", "", "`URL` of the default model; overrides STONE_URL and the settings")

	shown := "the pipeline"
	if a.fromArgument() {
		shown = "the pipeline of the project, in the nearest directory " + config.Name + ","
	}
	root.Long = root.Short + ".\n\n" + "At a terminal, without a command, " + shown + " is shown on the whole screen, and is run when you press Enter."
	root.Args = func(c *cobra.Command, args []string) error {
		if c.ArgsLenAtDash() == 0 {
			return nil
		}
		return unknown(c, args)
	}
	root.RunE = func(c *cobra.Command, args []string) error {
		if terminal(a.Stdin) == nil || terminal(a.Stdout) == nil || os.Getenv("TERM") == "dumb" {
			if c.Flags().NFlag() > 0 || len(args) > 0 {
				return fmt.Errorf("there is no terminal to show the pipeline on: see %s run --help", c.CommandPath())
			}
			if dir, err := config.Find("."); a.fromArgument() && dir == "" && err == nil {
				_, err := fmt.Fprintf(a.Stdout, noProject, a.Name)
				return output(err)
			}
			return c.Help()
		}
		// The pipeline reads these variables for its model, and so may programs that it starts.
		for name, value := range map[string]string{"STONE_PROVIDER": provider.value, "STONE_MODEL": *model, "STONE_URL": *url} {
			if value == "" {
				continue
			}
			if err := os.Setenv(name, value); err != nil {
				return failed("%s: %w", name, err)
			}
		}
		if _, err := settings(); err != nil {
			return err
		}
		if a.fromArgument() {
			return a.showProject(c, args, k)
		}
		p, err := pipeline(a.Pipeline, args)
		if err != nil {
			return err
		}
		return a.overPipeline(c, p, func(ctx context.Context, p stone.Ashlar) error { return a.show(ctx, p, k) })
	}
}

// showProject builds a program for the project's package, and runs the command line in that program.
func (a *app) showProject(c *cobra.Command, args []string, k keepFlags) error {
	dir, path, err := a.projectPipeline()
	if err != nil {
		return err
	}
	if dir == "" {
		_, err := fmt.Fprintf(a.Stdout, noProject, a.Name)
		return output(err)
	}
	if path == "" {
		return fmt.Errorf(`%s has no Go package: put one with a Pipeline there, or name its directory in settings.json, as {"pipeline": "./review"}`, dir)
	}
	if isPlan(path) {
		k.made.Pipeline = path
		return a.overPlan(c, path, args, func(ctx context.Context, p stone.Ashlar) error { return a.show(ctx, p, k) })
	}
	return a.build(c, []string{path}, args)
}

// projectPipeline returns the nearest .stone directory, in or above the working directory, and the path of its pipeline. Each of
// them is "" if it does not exist. The user is asked to trust the files.
func (a *app) projectPipeline() (dir, path string, err error) {
	if dir, err = config.Find("."); err != nil || dir == "" {
		return "", "", err
	}
	s, err := config.Read(dir)
	if err != nil {
		return dir, "", err
	}
	path = s.Pipeline
	if files, err := filepath.Glob(filepath.Join(path, "*.go")); path == dir && err == nil && len(files) == 0 {
		return dir, "", nil
	}
	if here, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(here, path); err == nil {
			path = "." + string(filepath.Separator) + rel
		}
	}
	f, err := a.foundProject(dir, s.Pipeline)
	if err == nil {
		err = a.consent(f)
	}
	return dir, path, err
}

// show shows the pipeline on the terminal until the user leaves, and records each run. After the screen is closed, the result of
// the last run is printed.
func (a *app) show(ctx context.Context, p stone.Ashlar, k keepFlags) error {
	if err := a.consentToConfig(); err != nil {
		return err
	}
	a.quiet = true // the screen shows the progress
	kept, err := a.keep(ctx, k)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // after this, a second signal ends the process
	watch, err := a.watching()
	if err != nil {
		return errors.Join(err, kept.close())
	}
	run := func(ctx context.Context, p stone.Ashlar, cfg stone.Config) (stone.Result, error) {
		cfg.Policy = a.calls.base.Policy
		cfg.Watch = event.All(cfg.Watch, watch(journal.RunInfo{Pipeline: p.Name()}))
		return kept.another(ctx, p, cfg)
	}
	var runs func(columns int) []string // nil with --no-db
	if kept != nil {
		runs = func(columns int) []string { return lastRuns(ctx, kept.store, columns) }
	}
	result, err := a.linked.screen(ctx, display.Config{Pipeline: p, Needs: a.needs(p), Read: func(typed string) (dag.DAG, error) { return a.typed(ctx, p, typed) },
		Check: func(cfg stone.Config) stone.Findings { return a.findings(p, cfg) },
		Grant: a.calls.base.Grant, In: a.Stdin, Out: unshielded(a.Stdout), By: user(), Run: run, Show: a.shownResult, Wait: true, Runs: runs})
	if errors.Is(err, display.ErrLeft) {
		return failed("%w", err)
	}
	if kept != nil {
		kept.id = result.RunID
	}
	failure := a.ended(kept, err)
	if err != nil && ctx.Err() == nil {
		failure = nil // the user has seen the failure
	}
	return errors.Join(failure, a.printResult(a.emitted(result), false), kept.close())
}

// lastRuns returns one line of text for each of the newest runs.
func lastRuns(ctx context.Context, s *store, columns int) []string {
	const most = 20
	rows, now, b := newRunTable(), time.Now(), new(strings.Builder)
	runs, err := s.Runs(ctx, journal.Query{Limit: most})
	for _, info := range runs {
		addRun(rows, info, now)
	}
	if err = errors.Join(err, rows.print(b, columns)); err != nil {
		return []string{err.Error()}
	}
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

// needs returns the names of the inputs that the user of a pipeline must enter, or "" if the pipeline needs none.
func (a *app) needs(p stone.Ashlar) string {
	given := a.calls.base.Input.Types()
	var names []string
	for _, in := range tree.Inputs(p) {
		if !in.Optional && !slices.Contains(given, in.Type.Name()) {
			names = append(names, in.Type.Name())
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return text.Line(names[0]) + ", as text or JSON"
	}
	return "a JSON object with " + text.Line(strings.Join(names, ", "))
}

// typed converts an input typed by the user: JSON, or plain text that does not start like a JSON object, list or string.
func (a *app) typed(ctx context.Context, p stone.Ashlar, typed string) (dag.DAG, error) {
	d, err := tree.ReadInput(ctx, p, []byte(typed))
	if err != nil && !strings.ContainsAny(typed[:min(1, len(typed))], "{[\"") {
		quoted, _ := json.Marshal(typed) // cannot fail: every string has a JSON form
		if said, wrong := tree.ReadInput(ctx, p, quoted); wrong == nil {
			return said, nil
		}
	}
	return d, err
}

// shownResult returns the text that the command run would print for a result.
func (a *app) shownResult(result stone.Result) string {
	var b bytes.Buffer
	on := app{Config: Config{Stdout: &b, Stderr: &b}, calls: a.calls}
	if err := on.printResult(on.emitted(result), false); err != nil {
		on.complain("Error: %v", err)
	}
	return b.String()
}

// settings returns the settings of the project around the working directory. The environment takes precedence.
func settings() (config.Settings, error) {
	var s config.Settings
	dir, err := config.Find(".")
	if err == nil && dir != "" {
		s, err = config.Read(dir)
	}
	if err != nil {
		return s, err
	}
	s.Provider = cmp.Or(os.Getenv("STONE_PROVIDER"), s.Provider)
	s.Model = cmp.Or(os.Getenv("STONE_MODEL"), s.Model)
	if url := os.Getenv("STONE_URL"); url != "" { // the user has chosen the URL, like the key
		s.URL, s.KeyEnv = url, config.KeyEnv(cmp.Or(s.Provider, "openai"))
	}
	return s, s.Check()
}

// noProject is shown to a user without a pipeline, and explains how to start.
const noProject = `There is no .stone here or above, so there is no pipeline to show.

  %[1]s init         write a first agent in Go, with its test
  %[1]s init plan    write a first plan, which needs no Go
  %[1]s run DIR      run the Go package in DIR, which has a Pipeline
  %[1]s --help       all commands
`

// screen returns a function that returns the size of the terminal at standard error. It is nil if there is no terminal that
// supports drawing.
func (a *app) screen() func() (columns, lines int) {
	f := terminal(a.Stderr)
	if f == nil || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() (int, int) {
		columns, lines, err := term.GetSize(int(f.Fd()))
		if err != nil || columns < 1 || lines < 1 {
			return 80, 24
		}
		return columns, lines
	}
}

// A shielded writes to a terminal and removes all control characters except line breaks and tabs, because these characters would
// let a model's text control the terminal.
type shielded struct {
	file *os.File
	text.Writer
}

// shield returns a writer that writes to a file. If the file is a terminal, the writer removes control characters; otherwise, it
// writes all bytes unchanged.
func shield(w io.Writer) io.Writer {
	if f := terminal(w); f != nil {
		return &shielded{f, text.Writer{W: f}}
	}
	return w
}

// unshielded returns the file itself, for a display that draws on it.
func unshielded(w io.Writer) io.Writer {
	if s, ok := w.(*shielded); ok {
		return s.file
	}
	return w
}

// terminal returns the file of a terminal, shielded or not. For anything else, it returns nil.
func terminal(file any) *os.File {
	if s, ok := file.(*shielded); ok {
		return s.file
	}
	if f, ok := file.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// color reports whether the user wants colors; see https://no-color.org.
func color() bool { return os.Getenv("NO_COLOR") == "" }
