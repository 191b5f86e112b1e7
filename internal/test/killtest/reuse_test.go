//go:build unix

package killtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// newReuser is a victim that reuses results of another run in its database.
func newReuser(t *testing.T) *victim {
	t.Helper()
	v := newVictim(t)
	if !v.end(v.start("", childRun+"=base")) {
		t.Fatal("the process was killed by somebody else")
	}
	for _, file := range []string{"lines", "acks"} {
		if err := os.Remove(filepath.Join(v.folder, file)); err != nil {
			t.Fatal(err)
		}
	}
	v.env = []string{childReuse + "=base"}
	return v
}

// A run that reuses another one is killed while it copies its results. In the end it has
// all of them, and has done no more work than an undisturbed run.
func TestKillReusing(t *testing.T) {
	want := newReuser(t).finish()
	if plain := undisturbed(t); len(want.lines) != 13 || want.ids != plain.ids {
		t.Fatalf("with reuse the run did %d pieces of work: %v; want 5 turns and 8 tool calls, and the same nodes", len(want.lines), want.lines)
	}
	for _, point := range []string{"before commit", "after commit"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			v := newReuser(t)
			for _, times := range []int{1, 5, 13, 21} {
				if v.end(v.start(fmt.Sprint(point, " ", times))) {
					t.Fatalf("the run ended before it was killed %s %d", point, times)
				}
				v.check(want)
			}
			v.compare(v.finish(), want, v.kills)
		})
	}
}
