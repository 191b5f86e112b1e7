package killtest

import (
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

func TestKillAtRandom(t *testing.T)       { killAtRandom(t, func(v *victim) *victim { return v }) }
func TestKillAtRandomServer(t *testing.T) { killAtRandom(t, (*victim).overServer) }

func killAtRandom(t *testing.T, over func(*victim) *victim) {
	t.Helper()
	kills := 20
	if s := os.Getenv("STONE_KILLS"); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatalf("STONE_KILLS=%q: want a number", s)
		}
	}
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
