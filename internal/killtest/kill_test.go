package killtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Runs are kept in a file, and in a server.
func TestKillAtPoints(t *testing.T)       { killAtPoints(t, func(v *victim) *victim { return v }) }
func TestKillAtPointsServer(t *testing.T) { killAtPoints(t, (*victim).overServer) }

func killAtPoints(t *testing.T, over func(*victim) *victim) {
	t.Helper()
	want := undisturbed(t)
	for _, point := range []string{"before intent", "after intent", "after work", "before commit", "after commit", "after acknowledge", inTool} {
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

// share is the part of a number of faults that STONE_FAULTS asks for: a percentage, or 4.
func share(t *testing.T, all int) int {
	t.Helper()
	percent, err := strconv.Atoi(cmp.Or(os.Getenv("STONE_FAULTS"), "4"))
	if err != nil || percent < 1 {
		t.Fatalf("STONE_FAULTS=%q: want a percentage", os.Getenv("STONE_FAULTS"))
	}
	return max(all*percent/100, 1)
}

func TestKillAtRandom(t *testing.T)       { killAtRandom(t, func(v *victim) *victim { return v }) }
func TestKillAtRandomServer(t *testing.T) { killAtRandom(t, (*victim).overServer) }

func killAtRandom(t *testing.T, over func(*victim) *victim) {
	t.Helper()
	kills := share(t, 500)
	want := undisturbed(t)
	for done := 0; done < kills; {
		v := over(newVictim(t))
		for ended := false; !ended && done+v.kills < kills; {
			p := v.start("")
			moment := rand.N(min(want.took, time.Second))                    // a busy machine may have been slow
			timer := time.AfterFunc(moment, func() { _ = p.Process.Kill() }) // it may have ended
			ended = v.end(p)
			timer.Stop()
			v.check(want)
			if ended {
				v.compare(v.trace(p, 0), want, v.kills)
			}
		}
		v.compare(v.finish(), want, v.kills)
		done += v.kills
	}
}
