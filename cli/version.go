package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/sandbox"
)

// versionFlag adds --version. That of cobra would need a template: a program that
// links text/template keeps every exported method, which costs megabytes.
func (a *app) versionFlag(root *cobra.Command) {
	wanted := root.Flags().BoolP("version", "v", false, "version for "+a.Name)
	run := root.RunE
	root.RunE = func(c *cobra.Command, args []string) error {
		if *wanted {
			_, err := fmt.Fprintln(a.Stdout, version())
			return output(err)
		}
		return run(c, args)
	}
}

// versionCommand prints the version, and with --verbose how commands are confined.
func (a *app) versionCommand(c *cobra.Command) {

	verbose := c.Flags().Bool("verbose", false, "also print how commands with a scope are confined on this machine")
	c.RunE = func(*cobra.Command, []string) error {
		lines := version()
		if *verbose {
			lines += "\n" + confinement()
		}
		_, err := fmt.Fprintln(a.Stdout, lines)
		return output(err)
	}
}

// confinement describes the method that confines commands, and why no stronger one does.
func confinement() string {
	m, err := sandbox.Find()
	if err != nil {
		return "sandbox " + text.Line(err.Error()) + ": commands with a scope are refused"
	}
	line := "sandbox " + string(m)
	if m != sandbox.Bubblewrap {
		line += fmt.Sprintf(" (bubblewrap: %v)", sandbox.Bubblewrap.Check())
	}
	return text.Line(line)
}

// version says which Stone this is, as far as the build recorded it.
func version() string {
	return fmt.Sprintf("stone %s %s %s/%s", cmp.Or(number(), "(unknown version)"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// number is the version of the module Stone, "" if the build did not record it.
func number() (version string) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == "github.com/stonelayer/stone" {
				version = m.Version
			}
		}
	}
	return version
}

// isRelease matches versions that "go get" finds.
var isRelease = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`)
