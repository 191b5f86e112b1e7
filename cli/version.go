package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
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

// version says which Stone this is, as far as the build recorded it.
func version() string {
	number := "(unknown version)"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == "github.com/stonelayer/stone" {
				number = m.Version
			}
		}
	}
	return fmt.Sprintf("stone %s %s %s/%s", number, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
