package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/plan"
)

// shared holds the values of flags that several commands have. Each flag is defined once, below.
type shared struct {
	db     string // the database of runs; see storeName
	json   bool
	quiet  bool
	grace  time.Duration
	tokens string // file with the tokens of servers; "" means the user's own
}

func (a *app) dbFlag(f *pflag.FlagSet) {
	f.Var(storeFlag{&a.db, storeEnv}, "db", "use the database `FILE`, or on a server: postgres://USER@HOST/NAME; overrides STONE_DB and .stone/stone.db of the project")
	noted(f, namesFile, "db")
}

// jsonFlag adds the flag for JSON output.
func (a *app) jsonFlag(f *pflag.FlagSet, what string) {
	f.BoolVar(&a.json, "json", false, "print "+what)
}

func (a *app) quietFlag(f *pflag.FlagSet) {
	f.BoolVarP(&a.quiet, "quiet", "q", false, "do not show progress")
}

func (a *app) graceFlag(f *pflag.FlagSet) {
	f.DurationVar(&a.grace, "grace", 30*time.Second, "give running steps this long to finish after SIGTERM, such as `90s`")
}

func (a *app) tokensFlag(f *pflag.FlagSet) {
	f.StringVar(&a.tokens, "tokens", "", "keep tokens in `FILE` instead of the user's own file for the project")
	noted(f, namesFile, "tokens")
}

// trustFlag adds the flag that trusts any project that the command finds.
func (a *app) trustFlag(f *pflag.FlagSet) {
	f.BoolVar(&a.trusting, "trust", false, "trust the configuration in .stone without asking, as "+trustEnv+"=1 does")
}

func (a *app) configFlag(f *pflag.FlagSet) {
	f.StringVar(&a.calls.config, "config", "", "read the configuration from `FILE` instead of the nearest .stone/stone.edn")
}

// accessFlags adds the flags that name a configuration and grant effects.
func (a *app) accessFlags(f *pflag.FlagSet) {
	a.configFlag(f)
	f.Var(&a.calls.grant, "grant", "also grant the `EFFECT`")
	noted(f, makesPipeline, "config", "grant")
}

// budgetFlags adds the budget flags.
func budgetFlags(f *pflag.FlagSet, to *budget.Limits) {
	f.Var(most(&to.USD), "max-usd", "spend at most `USD` dollars")
	f.Var(most(&to.Tokens), "max-tokens", "spend at most `N` tokens")
	f.Var(most(&to.Roundtrips), "max-roundtrips", "send at most `N` requests to models and capabilities")
	f.Var(most(&to.Latency), "max-time", "limit the duration to `90s`")
}

// budgetLine returns the flags with which a resumed run has the given budget.
func budgetLine(l budget.Limits) (line []string) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SortFlags = false
	budgetFlags(f, &l)
	f.VisitAll(func(f *pflag.Flag) {
		if f.Value.String() != "" {
			line = append(line, typed(f)...)
		}
	})
	return line
}

// planFlags adds the flags that apply only to plans.
func (a *app) planFlags(c *cobra.Command) {
	f := c.Flags()
	a.calls.mode = choice{"", []string{plan.Hybrid, plan.Strict, plan.Lazy}}
	f.StringArrayVar(&a.calls.bind, "bind", nil, "set a slot of a plan: `NAME=VALUE`, where the value is JSON, text or @FILE")
	choiceFlag(c, &a.calls.mode, "mode", "the order in which the nodes of a plan run")
	noted(f, makesPipeline, "bind", "mode")
}

// traceFlag adds the flag that names a file for the events of a run or call.
func traceFlag(f *pflag.FlagSet, file *string) {
	f.StringVar(file, "trace", "", "append the events to `FILE`, at the level in STONE_LOG_LEVEL (info)")
	noted(f, namesFile, "trace")
}

// pieces holds the flags of commands that print an answer as it arrives.
type pieces struct{ stream, partial bool }

func (p *pieces) describe(f *pflag.FlagSet, last string) {
	f.BoolVar(&p.stream, "stream", false, "print pieces of answers as they arrive, one per line; a line \"retracted\" voids the earlier pieces of its path and source"+last)
	f.BoolVar(&p.partial, "partial", false, "with --stream, also print partial JSON answers, completed to valid values, in lines \"partial\"")
}

func (p pieces) check() error {
	if p.partial && !p.stream {
		return errors.New("--partial has no effect without --stream: add --stream")
	}
	return nil
}

const (
	// makesPipeline marks flags that determine the pipeline. These are recorded with a run.
	makesPipeline = "makes-pipeline"
	// namesFile marks flags whose value is a file name relative to the working directory.
	namesFile = "names-file"
	// packageFlag is the flag that passes the PIPELINE argument on to the program built from the package.
	packageFlag = "package"
)

// noted marks flags with an annotation.
func noted(f *pflag.FlagSet, as string, names ...string) {
	for _, name := range names {
		// SetAnnotation fails only if a flag is unknown.
		_ = f.SetAnnotation(name, as, []string{"yes"})
	}
}

// typed returns a flag and its value as a user would type them.
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

// pairs returns a repeatable flag's values by name; each has the form NAME=VALUE. It returns nil if the flag is not given.
func pairs(flag string, flags []string) (labels map[string]string, err error) {
	for _, label := range flags {
		name, value, ok := strings.Cut(label, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--%s %s: want NAME=VALUE", flag, label)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
	}
	return labels, nil
}

// onlyPlans returns an error if a flag that applies only to plans is used with a package.
func onlyPlans(c *cobra.Command, pipeline string) error {
	for _, name := range []string{"bind", "mode"} {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			return fmt.Errorf("--%s applies only to plans, and %s is not one: plan files end in .edn or .json", name, pipeline)
		}
	}
	return nil
}

// effects is the value of a flag that names one or more effects, separated by commas.
type effects []string

func (e *effects) String() string     { return strings.Join(*e, ",") }
func (e *effects) Type() string       { return "effects" }
func (e *effects) GetSlice() []string { return *e }

func (e *effects) Set(s string) error {
	for name := range strings.SplitSeq(s, ",") {
		if err := e.Append(name); err != nil {
			return err
		}
	}
	return nil
}

func (e *effects) Append(name string) error {
	if err := grants.Check(name); err != nil {
		return err
	}
	*e = append(*e, name)
	return nil
}

func (e *effects) Replace(names []string) error {
	*e = nil
	return e.Set(strings.Join(names, ","))
}

// choice is a flag value that is one of several words.
type choice struct {
	value string
	of    []string
}

// choiceFlag adds a flag whose value must be one of several words. Shells complete these words.
func choiceFlag(c *cobra.Command, to *choice, name, usage string) {
	c.Flags().Var(to, name, usage)
	// Registering fails only for unknown flags.
	_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(to.of, cobra.ShellCompDirectiveNoFileComp))
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.of, "|") }
func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		return fmt.Errorf("want %s%s", strings.Join(c.of, ", "), suggest.Hint(s, slices.Values(c.of)))
	}
	c.value = s
	return nil
}

// A quantity is the value of a flag that sets a limit or a count. The variable that it sets is nil until the flag is set, unless
// the flag has a default.
type quantity[N int | float64 | time.Duration] struct {
	to    **N
	least N
}

// most returns the flag value for the limit to. If the flag is not given, there is no limit; 0 means that nothing is allowed.
func most[N int | float64 | time.Duration](to **N) *quantity[N] { return &quantity[N]{to: to} }

// count returns the value of a flag that sets a number, which must not be 0.
func count(to *int) *quantity[int] { return &quantity[int]{&to, 1} }

func (n *quantity[N]) String() string {
	if n.to == nil || *n.to == nil {
		return ""
	}
	if f, ok := any(**n.to).(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(**n.to)
}

func (n *quantity[N]) Set(text string) (err error) {
	var v N
	switch to := any(&v).(type) {
	case *int:
		*to, err = strconv.Atoi(text)
	case *float64:
		*to, err = strconv.ParseFloat(text, 64)
	case *time.Duration:
		*to, err = time.ParseDuration(text)
	}
	switch {
	case err != nil:
		return err
	case n.least > 0 && v < n.least:
		return outOfRange(fmt.Sprintf("want %v or more, or leave the flag out", n.least))
	case !(v >= 0) || math.IsInf(float64(v), 1):
		return outOfRange("want 0 or more")
	case *n.to == nil:
		*n.to = new(N)
	}
	**n.to = v
	return nil
}

// Type implements pflag.Value; see flagError.
func (n *quantity[N]) Type() string {
	if _, ok := any(n.least).(time.Duration); ok {
		return "duration"
	}
	return fmt.Sprintf("%T", n.least)
}

// An outOfRange is the error for a number outside the range of its flag.
type outOfRange string

func (e outOfRange) Error() string { return string(e) }

// over returns the limits in flags, with limits that are not set there taken from others.
func over(flags, others budget.Limits) budget.Limits {
	return budget.Limits{
		Roundtrips: cmp.Or(flags.Roundtrips, others.Roundtrips), Tokens: cmp.Or(flags.Tokens, others.Tokens),
		USD: cmp.Or(flags.USD, others.USD), Latency: cmp.Or(flags.Latency, others.Latency),
	}
}
