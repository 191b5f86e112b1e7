package shell

import (
	"testing"

	"github.com/stonelayer/stone/internal/test/boxtest"
	"github.com/stonelayer/stone/sandbox"
)

// What a sandbox costs: the same command under each.
func BenchmarkRun(b *testing.B) {
	for _, m := range []sandbox.Method{sandbox.Bubblewrap, sandbox.Landlock, sandbox.Unconfined} {
		b.Run(string(m), func(b *testing.B) {
			boxtest.Need(b, m)
			s := New(Config{Dir: b.TempDir()})
			defer s.Close()
			s.find = func() (sandbox.Method, error) { return m, nil }
			tool := Run(s).Tool
			for b.Loop() {
				if _, err := tool.Run(b.Context(), []byte(`{"command":"true"}`)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
