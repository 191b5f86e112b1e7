package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/cli/internal/first"
	"github.com/stonelayer/stone/cli/internal/skill"
	"github.com/stonelayer/stone/internal/suggest"
)

func (a *app) init(c *cobra.Command) {
	c.ValidArgsFunction = cobra.FixedCompletions(first.Kinds, cobra.ShellCompDirectiveNoFileComp)
	c.RunE = func(_ *cobra.Command, args []string) error {
		kind := cmp.Or(strings.Join(args, ""), first.Kinds[0])
		if !slices.Contains(first.Kinds, kind) {
			return fmt.Errorf("unknown kind of project %q: want %s%s", kind, strings.Join(first.Kinds, ", "), suggest.Hint(kind, slices.Values(first.Kinds)))
		}
		written, err := first.Write(".", kind)
		if err != nil {
			return failed("%w", err)
		}
		_, err = fmt.Fprintf(a.Stdout, "wrote %s\n\nNext:\n%s", strings.Join(written, ", "), a.steps(kind, slices.Contains(written, "go.mod")))
		return output(err)
	}
}

// steps returns the next steps to take after init.
func (a *app) steps(kind string, module bool) string {
	var out strings.Builder
	step := func(command, why string) { fmt.Fprintf(&out, "  # %s\n  %s\n", why, command) }
	switch kind {
	case "agent":
		if !isRelease.MatchString(number()) && module {
			step("go mod edit -replace github.com/stonelayer/stone="+checkout(), "this Stone is no release: name its checkout")
		}
		step("go mod tidy", "find the modules")
		step("go test", "the agent with a scripted model")
		step("export OPENAI_API_KEY=… STONE_MODEL=…", "or another provider's settings: see "+a.Name+" --help")
		step(a.Name+` run . --input "Where is my order 7?"`, "the agent with that model")
	case "plan", "eval":
		bind := `--bind letter="My invoice is missing."`
		step(a.Name+" validate sort.edn "+bind, "check the plan, run nothing")
		step(a.Name+" run sort.edn "+bind, "run it")
		if kind == "eval" {
			step(a.Name+" eval sort.edn --data letters.csv --score exact --gate gate.edn", "how good it is, and how sure that is")
		}
	}
	step(a.Name+" show last", "what the last run did; "+a.Name+" inspect shows it in a browser")
	return out.String()
}

// checkout returns the directory that probably contains Stone's source: above or beside the current directory.
func checkout() string {
	const levels = 5
	dir := "."
	for range levels {
		dir = filepath.Join(dir, "..")
		for _, at := range []string{dir, filepath.Join(dir, "stone")} {
			if text, err := os.ReadFile(filepath.Join(at, "go.mod")); err == nil && strings.HasPrefix(string(text), "module github.com/stonelayer/stone\n") {
				return filepath.ToSlash(at)
			}
		}
	}
	return "../stone"
}

func (a *app) installSkill(c *cobra.Command) {
	var force bool
	var dir string
	c.Annotations = map[string]string{onlyFailed: "yes"}
	c.RunE = func(*cobra.Command, []string) error {
		if dir == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return fmt.Errorf("no home directory (%w): name a directory with --target-dir", err)
			}
			dir = filepath.Join(home, ".claude", "skills")
		}
		path, err := skill.Install(dir, force)
		var installed *skill.InstalledError
		if errors.As(err, &installed) {
			return failed("%w: --force replaces it", err)
		}
		if err != nil {
			return failed("the skill could not be installed: %w", err)
		}
		_, err = fmt.Fprintf(a.Stdout, "%s installed in %s\n", skill.Name, path)
		return output(err)
	}
	c.Flags().BoolVar(&force, "force", false, "replace an existing installation, including changed files")
	c.Flags().StringVar(&dir, "target-dir", "", "install below `DIR` in place of ~/.claude/skills")
}
