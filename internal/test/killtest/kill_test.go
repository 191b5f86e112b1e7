//go:build unix

package killtest

import (
	"fmt"
	"testing"
)

// Runs are kept in a file, and in a server.
func TestKillAtPoints(t *testing.T)       { killAtPoints(t, func(v *victim) *victim { return v }) }
func TestKillAtPointsServer(t *testing.T) { killAtPoints(t, (*victim).overServer) }

func killAtPoints(t *testing.T, over func(*victim) *victim) {
	t.Helper()
	want := undisturbed(t)
	for _, point := range []string{"before intent", "after intent", "after work", "before commit", "after commit", "after queue", inTool} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			v := over(newVictim(t))
			moments := []int{1, 5, 13, 21}
			if point == inTool { // there are 8 calls
				moments = []int{1, 2, 3}
			}
			for _, times := range moments {
				if v.end(v.start(fmt.Sprint(point, " ", times))) {
					t.Fatalf("the run ended before it was killed %s %d", point, times)
				}
				v.check(want)
			}
			v.compare(v.finish(), want, v.kills)
		})
	}
}

// A process is killed before and after each of its commits, and each time that it has queued a result for which it does not wait.
func TestKillAtEachCommit(t *testing.T) {
	want := undisturbed(t)
	for _, point := range []string{"before commit", "after commit", "after queue"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			kills := 0
			for n := 1; ; n++ {
				v := newVictim(t)
				if v.end(v.start(fmt.Sprint(point, " ", n))) {
					break
				}
				kills++
				v.check(want)
				v.compare(v.finish(), want, v.kills)
			}
			if t.Logf("%d kills", kills); kills < 5 {
				t.Errorf("%d kills: the runs have no such points", kills)
			}
		})
	}
}
