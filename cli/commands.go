package cli

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stonelayer/stone"
)

//go:embed commands.txt
var commandTable string

// An entry is a command in the table commands.txt.
type entry struct {
	group, path, args string
	short, long       string
	examples          []string
}

var entries = sync.OnceValue(func() (all []entry) {
	for _, group := range strings.Split(commandTable, "\n== ")[1:] {
		name, commands, _ := strings.Cut(group, "\n")
		for _, command := range strings.Split(commands, "\n# ")[1:] {
			use, about, _ := strings.Cut(command, "\n")
			words := strings.Fields(use)
			n := slices.IndexFunc(append(words, "["), func(w string) bool { return w == strings.ToUpper(w) })
			e := entry{group: name, path: strings.Join(words[:n], " "), args: strings.Join(words[n:], " ")}
			e.short, about, _ = strings.Cut(about, "\n")
			for line := range strings.Lines(about) {
				if example, ok := strings.CutPrefix(line, "  "); ok {
					e.examples = append(e.examples, strings.TrimSpace(example))
				} else {
					e.long += line
				}
			}
			e.long = strings.TrimSpace(e.long)
			all = append(all, e)
		}
	}
	return all
})

func init() { cobra.EnableCommandSorting = false } // commands are listed in the order of the table

// constructors maps the paths of this program's commands to functions that add flags and behavior. A command that only groups
// sub-commands has no entry.
func (a *app) constructors() map[string]func(*cobra.Command) {
	all := map[string]func(*cobra.Command){
		"run": a.run, "chat": a.chat, "act": a.act, "resume": a.resume, "fork": a.fork, "cancel": a.cancel, "answer": a.answer,
		"runs": a.runs, "runs gc": a.gc, "show": a.showRun, "diff": a.diff, "export": a.export, "verify": a.verify, "budgets": a.budgets,
		"trace": a.trace, "trace tally": a.tally, "trace lifecycle": a.lifecycle, "trace payload": a.payload,
		"validate": a.validate, "names": a.names, "paths": a.paths, "graph": a.graph, "explain": a.explain,
		"config": nil, "config check": a.configCheck, "config example": a.configExample,
		"model": nil, "model list": a.models, "model caps": a.caps, "model call": a.modelCall,
		"trust": a.trust, "login": a.login, "db": nil, "db backup": a.backup, "db check": a.dbCheck,
		"doctor": a.doctor, "install-skill": a.installSkill, "version": a.versionCommand,
	}
	if a.fromArgument() {
		all["init"] = a.init
	}
	for path, build := range a.linked.commands {
		if x := build(); a.fromArgument() || !x.OnlyPlans {
			all[path] = func(c *cobra.Command) { a.extra(c, x) }
		}
	}
	if a.linked.library != nil {
		all["index"], all["search"] = a.index, a.search
	}
	if a.linked.server != nil {
		all["serve"], all["inspect"] = a.serve, a.inspect
		for _, p := range a.linked.protocols {
			if name := p.Protocol(); name != "" {
				all[name] = a.oneClient
			}
		}
		all["token"], all["token create"], all["token list"], all["token revoke"] = nil, a.createToken, a.listTokens, a.revokeToken
	}
	return all
}

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
	made, has := map[string]*cobra.Command{"": root}, a.constructors()
	for _, e := range entries() {
		build, ok := has[e.path]
		if !ok {
			continue
		}
		c := a.newCommand(e)
		if build != nil {
			build(c)
		}
		above := made[strings.TrimSuffix(strings.TrimSuffix(e.path, c.Name()), " ")]
		if above == root && !root.ContainsGroup(e.group) {
			root.AddGroup(&cobra.Group{ID: e.group, Title: e.group + ":"})
		}
		if above == root {
			c.GroupID = e.group
		} else if above.Args != nil { // the command above takes no arguments of its own
			above.Args = unknown
		}
		if above != root && above.RunE == nil {
			above.RunE = func(c *cobra.Command, _ []string) error {
				var names []string
				for _, below := range c.Commands() {
					names = append(names, below.Name())
				}
				return fmt.Errorf("%s needs a command: %s", c.CommandPath(), strings.Join(names, ", "))
			}
		}
		above.AddCommand(c)
		made[e.path] = c
	}
	a.ownHelp(root)
	if len(a.Args) > 0 && strings.HasPrefix(a.Args[0], cobra.ShellCompRequestCmd) {
		unquote(root)
	}
	return root
}

// ownHelp makes errors from cobra's built-in commands look like errors from other commands.
func (a *app) ownHelp(root *cobra.Command) {
	const group = "Configure"
	root.SetHelpCommandGroupID(group)
	root.SetCompletionCommandGroupID(group)
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
	if c, _, err := root.Find([]string{"completion"}); err == nil { // a shell would execute the help text
		c.Args, c.RunE = unknown, func(c *cobra.Command, _ []string) error { return c.Help() }
	}
}

// newCommand creates a command from its entry in the table. Programs with one pipeline take no PIPELINE argument.
func (a *app) newCommand(e entry) *cobra.Command {
	if !a.fromArgument() {
		e.args = strings.TrimSpace(strings.NewReplacer("[PIPELINE] ", "", "[PIPELINE…] ", "").Replace(e.args))
	}
	words := strings.Fields(e.args)
	c := &cobra.Command{
		Use: e.path[strings.LastIndex(e.path, " ")+1:], Short: e.short, Long: e.long,
		Example: a.example(e.examples...), DisableFlagsInUseLine: true,
	}
	before, after, own := strings.Cut(e.args, "[-- ")
	if c.Use = strings.TrimSpace(c.Use+" "+before) + " [flags]"; own {
		c.Use += " [-- " + after
	} else {
		c.Args = fits(words)
	}
	switch {
	case slices.Contains(words, "[PIPELINE]"):
		c.Long += pipelineHelp
	case slices.Contains(words, "[PIPELINE…]"):
		c.Long += publishedArgs
	case strings.HasPrefix(e.args, "RUN"), strings.HasPrefix(e.args, "[RUN]"):
		c.Long += aRun
	}
	c.ValidArgsFunction = func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		next := ""
		if len(args) < len(words) {
			next = strings.Trim(words[len(args)], "[]…")
		}
		switch next {
		case "RUN", "RUN|FILE":
			return a.runNames(c, args, word)
		case "PIPELINE", "PLAN", "FILE":
			return nil, cobra.ShellCompDirectiveDefault
		case "DIR":
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

// fits returns an error unless the arguments match the command's usage, such as RUN [QUESTION TEXT].
func fits(words []string) cobra.PositionalArgs {
	least, most := len(words), len(words)
	if i := slices.IndexFunc(words, func(w string) bool { return w[0] == '[' }); i >= 0 {
		least = i
	}
	if most > 0 && strings.Contains(words[most-1], "…") {
		most = math.MaxInt
	}
	return func(c *cobra.Command, args []string) error {
		for i, word := range words[:least] {
			if i >= len(args) || strings.TrimSpace(args[i]) == "" {
				return fmt.Errorf("%s is missing: want %s", strings.TrimSuffix(word, "…"), c.UseLine())
			}
		}
		switch {
		case len(args) <= most:
			return nil
		case most == 0:
			if c.Flags().Lookup("db") != nil && strings.Contains(args[0], ".") {
				return fmt.Errorf("unexpected argument %q: %s takes none, and --db names a database", args[0], c.CommandPath())
			}
			return fmt.Errorf("unexpected argument %q: %s takes none", args[0], c.CommandPath())
		}
		return fmt.Errorf("unexpected argument %q: want %s, and text with spaces in quotes", args[most], c.UseLine())
	}
}

// unquote removes the quotation marks from the usage texts of flags, because shells show them verbatim.
func unquote(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
	for _, below := range c.Commands() {
		unquote(below)
	}
}

// unknown returns an error if the first argument is not the name of a sub-command of c.
func unknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := fmt.Sprintf("see %s --help", c.CommandPath())
	if home := homes[args[0]]; home != nil && !c.HasParent() {
		hint = "pass cli.Main the part of package " + home[0]
		if args[0] == "mcp" || args[0] == "acp" {
			hint = "pass cli.Main the parts of packages " + strings.Join(home, " and ")
		}
		hint += ", or the parts of cli/all for all"
	} else if near := meant(c, args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %s?", strings.Join(near, " or "))
	} else if i := slices.IndexFunc(entries(), func(e entry) bool { return e.path[strings.LastIndex(e.path, " ")+1:] == args[0] }); i >= 0 {
		hint = fmt.Sprintf("did you mean %s %s?", c.Root().Name(), entries()[i].path)
	}
	return fmt.Errorf("unknown command %q for %s: %s", args[0], c.CommandPath(), hint)
}

// givenLater marks commands that build a pipeline before its input is available.
const givenLater = "given-later"

// pipelineHelp describes the argument PIPELINE.
const pipelineHelp = "\n\nPIPELINE is a Go package that exports Pipeline, a variable or a function of the ARGs; a plan in a file .edn or .json;\n" +
	"or an intent or capability such as :text/answer. The default is the pipeline configured in the nearest .stone."

// looksOnly lists the commands that neither execute any part of a pipeline nor spend money.
var looksOnly = map[string]bool{"names": true, "paths": true, "graph": true}

// over makes a command call do with a pipeline. With FromArgument, a package is first built into a program that takes over the
// command. Plans and intents stay in this program, unless it lacks configured packages; see relinked.
func (a *app) over(c *cobra.Command, do func(context.Context, stone.Ashlar) error) {
	if a.fromArgument() {
		a.planFlags(c)
	}
	if a.accessFlags(c.Flags()); !looksOnly[c.Name()] {
		budgetFlags(c.Flags(), &a.calls.budget)
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		hint := "; flags of the pipeline follow --"
		if a.fromArgument() {
			hint += ", and --bind NAME=VALUE fills a slot of a plan"
		}
		return flagError(c, err, hint)
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
		if a.fromArgument() && len(before) == 1 && isIntent(before[0]) {
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
}

// ownPipeline returns the PIPELINE to use if none is given: the project's pipeline, or "" if the project has none.
func (a *app) ownPipeline(c *cobra.Command) ([]string, error) {
	_, path, err := a.projectPipeline()
	if err != nil || path == "" {
		return nil, err
	}
	if f := c.Flags().Lookup(packageFlag); f != nil { // needed to resume the run
		err = f.Value.Set(path)
	}
	return []string{path}, err
}

// example returns the examples for a command's help. In a program with one pipeline, it omits PIPELINE arguments and plans.
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

// output wraps an error that occurred while writing a result.
func output(err error) error {
	if err != nil {
		return failed("write the result: %w", err)
	}
	return nil
}
