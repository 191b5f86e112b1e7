package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

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
