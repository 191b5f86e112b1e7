// Package panics returns the place in the source at which a panic occurred.
package panics

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Place returns the place of the panic that is being recovered, as "file:line", or "" if it is unknown. It must be called by the
// deferred function that recovers, or by a function called from there.
func Place() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for panicking := false; ; {
		f, more := frames.Next()
		if panicking && f.File != "" && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		panicking = panicking || f.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}
