package cli

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/plan"
)

// calls holds a command's settings for calls: its flags, the configuration and, if the PIPELINE is a plan, the plan.
type calls struct {
	config string
	grant  effects
	budget budget.Limits
	bind   []string
	mode   choice

	conf    *config.Config // nil until a command or pipeline needs it
	file    string         // the file of the plan, or ""
	plan    *plan.Plan
	silent  bool           // a finding has reported that the plan emits nothing
	slots   []string       // names of slots whose values are set later, for each case of an evaluation
	refused stone.Findings // findings, if the file is not a plan at all
	opts    plan.Options
	base    stone.Config // configuration of the plan's run
	release func()       // releases the deadline of the run, if it has one

	limits budget.Limits // limits of the run, from flags or the configuration
	table  llm.Table     // nil without a configuration
}

// configured reads the configuration on its first call and returns it.
func (a *app) configured() (conf *config.Config, err error) {
	k := &a.calls
	switch {
	case k.conf != nil:
	case k.config != "":
		k.conf, err = config.Load(k.config, &a.linked.kinds)
	default:
		k.conf, err = config.Nearest(".", &a.linked.kinds)
	}
	if err != nil {
		return nil, err
	}
	for _, s := range k.conf.Secrets { // text may contain the secret before anything else uses the secret
		if value, err := s.Read(); err == nil {
			a.secrets.NoteHeader(string(value))
		}
	}
	a.secrets.NoteEnv(k.conf.Passed)
	k.base.Policy = k.conf.Policy
	return k.conf, nil
}

// overConfig makes a command call do with the configuration.
func (a *app) overConfig(c *cobra.Command, do func(ctx context.Context, conf *config.Config, args []string) error) {
	a.configFlag(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		conf, err := a.configured()
		if err != nil {
			return err
		}
		defer a.closeCalls()
		return do(c.Context(), conf, args)
	}
}

// closeCalls stops the programs that were started for the configuration.
func (a *app) closeCalls() {
	if a.calls.release != nil {
		a.calls.release()
	}
	if a.calls.conf == nil {
		return
	}
	if err := a.calls.conf.Close(); err != nil {
		a.complain("Error: %v", err)
	}
}

// spending returns a context with an account for a run that has a budget. Flags take precedence over the configuration.
func (k *calls) spending(ctx context.Context, f *pflag.FlagSet) (context.Context, error) {
	k.limit()
	if k.conf != nil {
		ctx = llm.WithTable(ctx, k.table)
	}
	if k.limits == (budget.Limits{}) {
		return ctx, nil
	}
	// The time limit also applies to a run without calls.
	account := budget.New(k.limits)
	ctx, k.release = account.Context(ctx)
	if ctx.Err() != nil {
		return ctx, failed("%w", context.Cause(ctx))
	}
	return budget.With(ctx, account), nil
}

// limit sets the limits of a run and the table of models.
func (k *calls) limit() {
	if k.limits = k.budget; k.conf != nil {
		k.limits, k.table = over(k.budget, k.conf.Budget), k.conf.Table
	}
}

// overPipeline calls do with a Go pipeline. If the pipeline uses the applicator, overPipeline first reads the configuration.
func (a *app) overPipeline(c *cobra.Command, p stone.Ashlar, do func(context.Context, stone.Ashlar) error) error {
	defer a.closeCalls()
	if err := a.fillApplicator(c.Flags().Changed("max-usd") || asksAny(p)); err != nil {
		return err
	}
	a.calls.base.Grant = a.calls.granted(p)
	ctx, err := a.calls.spending(c.Context(), c.Flags())
	if err != nil {
		return err
	}
	return do(ctx, p)
}

// granted returns the effects granted to a Go pipeline: all effects, unless the user or the configuration limits them.
func (k *calls) granted(p stone.Ashlar) []string {
	switch {
	case k.conf == nil || !applicatorWanted():
		return k.grant
	case k.grant == nil && !k.conf.Grants() && !p.IsZero():
		return k.conf.Unbounded(p.Effects())
	}
	return k.conf.Grant(k.grant)
}

// with returns the Config with which a pipeline is run and validated. For a plan, the input is the slots.
func (a *app) with(input dag.DAG) stone.Config {
	cfg := a.calls.base
	if a.calls.file == "" {
		cfg.Input = input
	}
	return cfg
}

// findings returns the errors and warnings for a pipeline or, if it was built from a plan, for the plan.
func (a *app) findings(p stone.Ashlar, cfg stone.Config) stone.Findings {
	cfg.Frontend = &person{} // the terminal would answer questions
	found := a.calls.unfit(p)
	if a.calls.file == "" {
		found = append(stone.Validate(p, cfg.Given()), found...)
	} else {
		found = append(a.calls.findings(cfg), found...)
	}
	for i := range found {
		if f := &found[i]; f.Type == "effect-not-granted" && a.calls.conf != nil {
			if why := a.calls.conf.Denied(f.Queried); why != "" {
				f.Message = why
			}
		}
	}
	return found
}

// unfit returns a finding for each step whose model cannot answer, or whose model has no known price although the budget limits
// money.
func (k *calls) unfit(p stone.Ashlar) (found stone.Findings) {
	if p.IsZero() {
		return nil
	}
	ctx := llm.WithTable(context.Background(), k.table)
	walkDetails(p, "", func(a stone.Ashlar, path string) {
		report := func(code string, err error) {
			found = append(found, stone.Finding{Type: code, Ashlar: a.Name(), Path: path, Message: err.Error()})
		}
		d := a.Detail()
		if d.Unpriced != nil && k.limits.USD != nil {
			for _, model := range d.Unpriced(ctx) {
				report("unpriced-model", &budget.UnpricedError{Model: model})
			}
		}
		if d.Unfit != nil {
			if err := d.Unfit(ctx); err != nil {
				report("unfit-model", err)
			}
		}
	})
	return found
}

// asksAny reports whether at least one step of the pipeline calls a model.
func asksAny(p stone.Ashlar) (any bool) {
	if !p.IsZero() {
		walkDetails(p, "", func(a stone.Ashlar, _ string) {
			any = any || a.Detail().Unpriced != nil
		})
	}
	return any
}

// walkDetails calls the function for an ashlar and all of its descendants.
func walkDetails(a stone.Ashlar, path string, visit func(a stone.Ashlar, path string)) {
	path += a.Name()
	visit(a, path)
	for _, child := range a.Children() {
		walkDetails(child, path+"/", visit)
	}
}

// emitted sets the result of a finished plan's run to the value that the plan emitted, or to null if the plan emitted nothing.
func (a *app) emitted(result stone.Result) stone.Result {
	if a.calls.file == "" || result.Node == nil {
		return result
	}
	node, err := result.DAG.Nearest(terms.Emit)
	if err != nil {
		if !a.calls.silent { // a finding has reported it
			a.complain("the plan emitted nothing: its result is null")
		}
		node, err = dag.NewNode(dag.Spec{Type: terms.Emit, Content: json.RawMessage("null")})
	}
	if err != nil {
		a.complain("Error: %v", err)
	}
	result.Node = node
	return result
}

// words returns the words, joined for display, or "-" if there are none.
func words(all []string) string {
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ", ")
}
