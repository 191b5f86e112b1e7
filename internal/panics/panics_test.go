package panics

import (
	"regexp"
	"testing"
)

func TestPlace(t *testing.T) {
	var none *struct{ n int }
	for name, body := range map[string]func(){
		"panic":         func() { panic("no luck") },
		"runtime error": func() { none.n++ },
		"deferred":      func() { defer func() { panic("no luck") }() },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				recover()
				if got := Place(); !regexp.MustCompile(`^panics_test\.go:1[1-9]$`).MatchString(got) {
					t.Errorf("got %q, want the line of the body", got)
				}
			}()
			body()
		})
	}
	if got := Place(); got != "" {
		t.Errorf("got %q where nothing panics", got)
	}
}
