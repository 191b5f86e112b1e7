package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/grants"
)

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           a.Name,
		Short:         "Run and inspect a pipeline of language models and code",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	a.terminalUI(root)
	a.versionFlag(root)
	root.SetArgs(a.Args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	a.fitHelp(root)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return flagError(c, err, "")
	})
	root.AddCommand(a.run(), a.chat(), a.eval(), a.resume(), a.cancel(), a.answer(), a.runs(), a.db(), a.kpi(), a.budgets(), a.showRun(), a.diff(), a.exportRun(), a.verify(), a.validate(), a.graph(), a.names(), a.paths(), a.explain(), a.act(), a.caps(), a.config(), a.trace(), a.model(), a.models(), a.trust(), a.login(), a.installSkill(), a.doctor(), a.versionCommand())
	if a.fromArgument() {
		root.AddCommand(a.init())
	}
	if a.linked.library != nil {
		root.AddCommand(a.index(), a.search())
	}
	if a.linked.server != nil {
		root.AddCommand(a.serve(), a.mcp(), a.acp(), a.token(), a.inspect())
	}
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		show := help.Run
		help.Run, help.RunE = nil, func(c *cobra.Command, args []string) error {
			if found, rest, err := root.Find(args); len(args) > 0 && (err != nil || found == root || len(rest) > 0) {
				return unknown(root, args)
			}
			show(c, args)
			return nil
		}
	}
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil { // a shell would run the help text
		c.Args, c.RunE = unknown, func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	if len(a.Args) > 0 && strings.HasPrefix(a.Args[0], cobra.ShellCompRequestCmd) {
		unquote(root)
	}
	return root
}

// unquote takes the marks from the texts of flags, which a shell shows as they are.
func unquote(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
	for _, below := range c.Commands() {
		unquote(below)
	}
}

// unknown rejects a word that is no command below c.
func unknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := fmt.Sprintf("see %s --help", c.CommandPath())
	if near := meant(c, args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %s?", strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown command %q for %s: %s", args[0], c.CommandPath(), hint)
}

func none(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: %s takes none", args[0], c.CommandPath())
	}
	return nil
}

// givenLater marks commands that build a pipeline before its input is known.
const givenLater = "given-later"

// plansAlone marks commands that take no packages.
const plansAlone = "plans-alone"

// pipelineHelp describes the argument PIPELINE.
const pipelineHelp = "\n\nPIPELINE is a Go package, by directory or import path; a plan, by the name of its .edn or .json file; or an\n" +
	"intent or capability of the configuration, such as :text/answer. The package exports Pipeline, a variable or\n" +
	"a function of the ARGs. The default is the pipeline of the project, configured in the nearest directory .stone."

// looksOnly has the commands that run nothing of a pipeline, and spend nothing.
var looksOnly = map[string]bool{"names": true, "paths": true, "graph": true}

// over makes a command that works on a pipeline. With FromArgument it first
// builds the package and passes itself on to the program.
func (a *app) over(c *cobra.Command, do func(context.Context, stone.Ashlar) error) *cobra.Command {
	c.Use += " [flags] [-- ARG…]"
	if c.Annotations[plansAlone] != "" {
		c.Use = strings.Replace(c.Use, " ", " PLAN ", 1)
		a.planFlags(c)
	} else if a.fromArgument() {
		c.Use = strings.Replace(c.Use, " ", " [PIPELINE] ", 1)
		a.planFlags(c)
		c.Long += pipelineHelp
		c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		}
	} else {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	if a.accessFlags(c.Flags()); !looksOnly[c.Name()] {
		budgetFlags(c.Flags(), &a.calls.budget)
	}
	c.DisableFlagsInUseLine = true
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return flagError(c, err, "; flags of the pipeline follow --")
	})
	c.RunE = func(c *cobra.Command, args []string) error {
		before, after := args, []string(nil)
		if n := c.ArgsLenAtDash(); n >= 0 {
			before, after = args[:n], args[n:]
		}
		if a.fromArgument() && len(before) == 0 {
			var err error
			if before, err = a.ownPipeline(c); err != nil {
				return err
			}
		}
		if a.fromArgument() && len(before) == 1 && isPlan(before[0]) {
			return a.overPlan(c, before[0], after, do)
		}
		if a.fromArgument() && len(before) == 1 && isIntent(before[0]) && c.Annotations[plansAlone] == "" {
			return a.overIntent(c, before[0], after, do)
		}
		if a.fromArgument() {
			if len(before) == 1 {
				if err := noPlan(before[0]); err != nil {
					return err
				}
			}
			return a.build(c, before, after)
		}
		if len(before) > 0 {
			return fmt.Errorf("unexpected argument %q: arguments of the pipeline follow --", before[0])
		}
		p, err := pipeline(a.Pipeline, after)
		if err != nil {
			return err
		}
		return a.overPipeline(c, p, do)
	}
	return c
}

// ownPipeline is the PIPELINE of a command line that names none: the project's, if
// there is one.
func (a *app) ownPipeline(c *cobra.Command) ([]string, error) {
	_, path, err := a.projectPipeline()
	if err != nil || path == "" {
		return nil, err
	}
	if f := c.Flags().Lookup(packageFlag); f != nil { // so that the run can be resumed
		err = f.Value.Set(path)
	}
	return []string{path}, err
}

// example returns the examples of a command's help. Programs of one pipeline take no
// PIPELINE argument, and no plans.
func (a *app) example(lines ...string) string {
	var out []string
	for _, line := range lines {
		if !a.fromArgument() {
			if strings.Contains(line, "plan.edn") || strings.Contains(line, " :") {
				continue
			}
			line = strings.Join(slices.DeleteFunc(strings.Fields(line), func(word string) bool {
				return strings.HasPrefix(word, "./examples/") || word == "./triage" || word == "./support"
			}), " ")
		}
		out = append(out, "  "+a.Name+" "+line)
	}
	return strings.Join(out, "\n")
}

// output marks an error of writing a result.
func output(err error) error {
	if err != nil {
		return failed("write the result: %w", err)
	}
	return nil
}

// effects is the value of a flag that names effects, one or several with commas.
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

// choice is the value of a flag that is one of several words.
type choice struct {
	value string
	of    []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.of, "|") }
func (c *choice) Set(s string) error {
	for _, word := range c.of {
		if s == word {
			c.value = s
			return nil
		}
	}
	return fmt.Errorf("want %s", strings.Join(c.of, ", "))
}
