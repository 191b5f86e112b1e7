package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// keepFlags is what the flags of run say about how the run is kept.
type keepFlags struct {
	db     string
	none   bool
	id     string
	reuse  string
	grace  time.Duration
	resume string // the database in which the run is there already
	force  bool   // although its pipeline changed

	made source
}

// source is the command line of a run, kept with it to make its pipeline again.
type source struct {
	Dir      string   `json:"dir"`                // in which it was given
	Program  string   `json:"program"`            // its command
	Pipeline string   `json:"pipeline,omitempty"` // the argument PIPELINE, none for a program with a pipeline of its own
	Flags    []string `json:"flags,omitempty"`    // those that make another pipeline
	Args     []string `json:"args,omitempty"`     // behind --
}

// String returns the command as it was typed, but for the flags that only say
// what is shown.
func (s source) String() string {
	words := []string{s.Program, "run"}
	if s.Pipeline != "" {
		words = append(words, s.Pipeline)
	}
	words = append(words, s.Flags...)
	if len(s.Args) > 0 {
		words = append(append(words, "--"), s.Args...)
	}
	for i, w := range words {
		words[i] = quoted(w)
	}
	return strings.Join(words, " ")
}

func readSource(info journal.RunInfo) (s source, ok bool) {
	return s, json.Unmarshal(info.Source, &s) == nil && s.Dir != ""
}

// makesPipeline is the annotation of flags that say which pipeline is made. They
// are kept with a run.
const makesPipeline = "makes-pipeline"

// namesFile is the annotation of flags with the name of a file, which is as seen
// from the working directory.
const namesFile = "names-file"

// packageFlag tells the program of a package which PIPELINE it is.
const packageFlag = "package"

// addKeepFlags adds the flags of run that say how it is kept, and reads them
// before it runs.
func addKeepFlags(c *cobra.Command, k *keepFlags) {
	addStoreFlags(c, k)
	f := c.Flags()
	f.StringVar(&k.id, "id", "", "`NAME` of the run, by which other commands find it, in place of one that is made up")
	f.StringVar(&k.reuse, "reuse", "", "let reusable steps take results from `RUN`, or from any run: --reuse or --reuse=RUN")
	f.Lookup("reuse").NoOptDefVal = journal.AnyRun
	_ = c.RegisterFlagCompletionFunc("reuse", runNames) // it fails for flags that there are not
	graceFlag(f, &k.grace)
	f.StringVar(&k.resume, "resume", "", "")
	f.BoolVar(&k.force, "force", false, "")
	for _, name := range []string{"resume", "force"} {
		f.Lookup(name).Hidden = true // they are for what other commands pass on
	}
}

// addStoreFlags adds the flags that say where runs are kept, and reads the command
// line before the command runs.
func addStoreFlags(c *cobra.Command, k *keepFlags) {
	f := c.Flags()
	dbFlag(f, &k.db)
	f.BoolVar(&k.none, "no-db", false, "do not keep the run: it cannot be resumed")
	f.StringVar(&k.made.Pipeline, packageFlag, "", "")
	f.Lookup(packageFlag).Hidden = true // as those of addKeepFlags
	c.PreRunE = func(c *cobra.Command, args []string) (err error) {
		if n := c.ArgsLenAtDash(); n >= 0 {
			args, k.made.Args = args[:n], args[n:]
		}
		if len(args) > 0 {
			k.made.Pipeline = args[0]
		}
		if len(args) > 1 && k.reuse == journal.AnyRun {
			return fmt.Errorf("unexpected argument %q: the run for --reuse is given as --reuse=RUN", args[1])
		}
		k.made.Program = c.Root().Name()
		c.Flags().Visit(func(f *pflag.Flag) {
			if f.Annotations[makesPipeline] != nil {
				k.made.Flags = append(k.made.Flags, typed(f)...)
			}
		})
		if k.made.Dir, err = os.Getwd(); err != nil {
			return fmt.Errorf("the working directory is not known: %w", err)
		}
		return k.check(c.Flags())
	}
}

func graceFlag(f *pflag.FlagSet, grace *time.Duration) {
	f.DurationVar(grace, "grace", 30*time.Second, "how long steps under way may take to end after SIGTERM, as `90s`")
}

// typed returns a flag that was set as it is typed.
func typed(f *pflag.Flag) []string {
	list, many := f.Value.(pflag.SliceValue)
	if !many {
		return []string{"--" + f.Name + "=" + f.Value.String()}
	}
	var args []string
	for _, v := range list.GetSlice() {
		args = append(args, "--"+f.Name+"="+v)
	}
	return args
}

var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func (k *keepFlags) check(f *pflag.FlagSet) error {
	if k.none {
		for flag, value := range map[string]string{"--db": k.db, "--id": k.id, "--reuse": k.reuse} {
			if value != "" {
				return fmt.Errorf("--no-db keeps nothing, so that %s has no meaning: leave one of them out", flag)
			}
		}
	}
	if k.id != "" && (!runName.MatchString(k.id) || k.id == youngest) {
		return fmt.Errorf("--id %q: want up to 100 of a-z, A-Z, 0-9, \".\", \"-\" and \"_\", a letter or digit first, and not %q, which is the youngest run", k.id, youngest)
	}
	if f.Changed("grace") && k.grace <= 0 {
		return fmt.Errorf("--grace %v: want more than 0", k.grace)
	}
	return nil
}

// A keptRun is a run on its way into a store; nil is one that is not kept.
type keptRun struct {
	*store
	id   string
	opts journal.Options
}

// keep opens the store and finds out under which name the run is kept.
func (a *app) keep(ctx context.Context, k keepFlags, quiet bool) (*keptRun, error) {
	if k.none {
		return nil, nil
	}
	s, err := openStore(k.db, k.resume, true)
	if err != nil {
		return nil, err
	}
	run := &keptRun{store: s, id: cmp.Or(k.id, strings.ToLower(rand.Text()[:10]))}
	if err := run.prepare(ctx, a, k); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if !quiet {
		a.complain("run %s", run.id)
	}
	return run, nil
}

func (r *keptRun) prepare(ctx context.Context, a *app, k keepFlags) (err error) {
	r.opts = journal.Options{Resume: k.resume != "", Force: k.force, Reuse: k.reuse, Grace: k.grace, Secrets: append(keys(), a.calls.secrets()...)}
	if r.opts.Source, err = json.Marshal(k.made); err != nil {
		return fmt.Errorf("the command line cannot be kept: %w", err)
	}
	for _, secret := range r.opts.Secrets {
		if bytes.Contains(r.opts.Source, []byte(secret)) {
			return errors.New("the command line holds a key, which must not be kept: have the pipeline read it from the environment, or run it with --no-db")
		}
	}
	if k.reuse != "" && k.reuse != journal.AnyRun {
		from, err := r.find(ctx, k.reuse)
		if err != nil {
			return fmt.Errorf("--reuse: %w", err)
		}
		r.opts.Reuse = from.ID
	}
	before, err := r.Find(ctx, r.id)
	there := err == nil && before.ID == r.id
	switch {
	case err != nil && !errors.Is(err, journal.ErrNoRun) && !errors.As(err, new(*journal.AmbiguousError)):
		return failed("%w", err)
	case there && k.resume == "":
		return fmt.Errorf("--id: there is a run %s, %s: go on with it by %q, or take another name", r.id, before.State, a.command(r.store, "resume", r.id))
	case there && before.State == journal.Interrupted:
		a.complain("the process of run %s has ended without a word: its run is taken over within seconds", r.id)
	case !there && k.resume != "":
		return r.unknown(ctx, r.id)
	}
	return nil
}

// keys are the secrets of the environment that models are asked with.
func keys() []string {
	var keys []string
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"} {
		if key := os.Getenv(name); len(key) >= 8 { // what is shorter is a placeholder
			keys = append(keys, key)
		}
	}
	return keys
}

// start runs the pipeline, into the store if there is one.
func (r *keptRun) start(ctx context.Context, p stone.Ashlar, cfg stone.Config, drain <-chan struct{}) (stone.Result, error) {
	if r != nil {
		cfg.RunID, r.opts.Drain = r.id, drain
	}
	return r.another(ctx, p, cfg)
}

// another runs the pipeline once more, under a name of its own.
func (r *keptRun) another(ctx context.Context, p stone.Ashlar, cfg stone.Config) (stone.Result, error) {
	if r == nil {
		return stone.Run(ctx, p, cfg)
	}
	cfg.Recorder = journal.Keep(r.DB, r.opts)
	return stone.Run(ctx, p, cfg)
}

// close closes the store.
func (r *keptRun) close() error {
	if r == nil {
		return nil
	}
	return r.Close()
}

// ended says how a run ended that has no result, and how to go on with it.
func (a *app) ended(r *keptRun, err error) error {
	changed, isChanged := errors.AsType[*journal.ChangedError](err)
	switch {
	case err == nil:
		return nil
	case isChanged:
		fmt.Fprintf(a.Stderr, "Error: run %s was started with another pipeline:\n", r.id)
		for _, line := range changed.Changes {
			fmt.Fprintln(a.Stderr, "  "+text.Line(line))
		}
		a.complain("Start a new run, or resume with what is unchanged: %s", a.command(r.store, "resume", r.id, "--force"))
	case r != nil && errors.Is(err, kind.Waiting):
		return a.waiting(r)
	default:
		a.complain("failed: %v", err)
		if r.resumable(err) {
			a.complain("to go on with what is done: %s", a.command(r.store, "resume", r.id))
		}
	}
	return &exitError{code: Failed}
}

// resumable reports whether a run that ended with an error can go on: if it has
// begun, and nothing stands in the way that will be there again.
func (r *keptRun) resumable(err error) bool {
	if r == nil || errors.As(err, new(*journal.HeldError)) || errors.As(err, new(*journal.DamageError)) {
		return false
	}
	info, err := r.Find(context.Background(), r.id) // also when the run was cancelled
	return err == nil && info.ID == r.id && !info.Started.IsZero()
}

// waiting says for which answers a run waits.
func (a *app) waiting(r *keptRun) error {
	open, err := r.open(context.Background(), r.id) // also when the run was cancelled
	if err != nil {
		return err
	}
	a.complain("waiting: the run goes on when it is answered and resumed")
	if err := a.printQuestions(a.Stderr, r.store, open); err != nil {
		return failed("list the questions: %w", err)
	}
	a.complain("to go on: %s", a.command(r.store, "resume", r.id))
	return &exitError{code: Waiting}
}
