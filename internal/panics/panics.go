// Package panics locates panics.
package panics

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Place returns "file:line" of the code whose panic is being recovered, or "" if it is
// unknown. Call it from the deferred function that recovers, or from a function that it
// calls.
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
