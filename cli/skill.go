package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/cli/internal/skill"
)

func (a *app) installSkill(c *cobra.Command) {
	var force bool
	var dir string
	c.Annotations = map[string]string{onlyFailed: "yes"}
	c.RunE = func(*cobra.Command, []string) error {
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
	c.Flags().BoolVar(&force, "force", false, "replace an existing installation, with all changes made to it")
	c.Flags().StringVar(&dir, "target-dir", "", "install below `DIR` in place of ~/.claude/skills")
}
