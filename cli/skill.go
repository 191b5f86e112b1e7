package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/cli/internal/skill"
)

func (a *app) installSkill() *cobra.Command {
	var force bool
	var dir string
	c := &cobra.Command{
		Use:   "install-skill",
		Short: "Install a skill that teaches a coding agent to design pipelines",
		Long: "Install-skill writes the folder " + skill.Name + ": an interview about the purpose of a pipeline, a\n" +
			"cheat sheet of the library, patterns, and the checks to run. The default folder is ~/.claude/skills,\n" +
			"where some coding agents look; --target-dir names another one.",
		Example:           a.example("install-skill", "install-skill --target-dir ./skills --force"),
		Annotations:       map[string]string{onlyFailed: "yes"},
		Args:              none,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return a.putSkill(dir, force) },
	}
	c.Flags().BoolVar(&force, "force", false, "replace an existing installation, with all changes made to it")
	c.Flags().StringVar(&dir, "target-dir", "", "install below `DIR` in place of ~/.claude/skills")
	return c
}

func (a *app) putSkill(dir string, force bool) error {
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return fmt.Errorf("no home directory (%w): name a folder with --target-dir", err)
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
