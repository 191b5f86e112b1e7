//go:build unix

package killtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/journal"
)

// takeOver waits until a run has no live process, and finishes it.
func takeOver(term context.Context, p stone.Ashlar, db *witness) (stone.Result, error) {
	for _, err := range db.Abandoned(term) {
		if err != nil {
			return stone.Result{}, err
		}
		result, err := run(term, p, db)
		if errors.As(err, new(*journal.HeldError)) {
			continue // another process was faster
		}
		return result, err
	}
	return stone.Result{}, context.Cause(term)
}

// Of several processes of a service, one takes over the run of each that is killed. No
// recorded step is repeated, and no step by a process that was not killed.
func TestTakeOver(t *testing.T) {
	want := undisturbed(t)
	v := newVictim(t).overServer()
	const kills = 4
	ended := make(chan *process, kills+1)
	start := func(point string, env ...string) {
		p := v.start(point, env...)
		go func() {
			_ = p.Wait() // end says how it ended
			ended <- p
		}()
	}
	// Each of these kills itself once it has done some of the work.
	start("after work 9", childServes+"="+starts)
	for range kills - 1 {
		start("after work 9", childServes+"="+takesOver)
	}
	for v.kills < kills {
		p := <-ended
		if v.end(p) {
			t.Fatalf("the run ended after %d kills", v.kills)
		}
		v.check(want)
	}
	start("", childServes+"="+takesOver)
	last := <-ended
	if !v.end(last) {
		t.Fatal("the process was killed by somebody else")
	}
	v.compare(v.trace(last, 0), want, kills)
}

// A process that is stopped for longer than its lease loses the run. When it continues, it
// writes nothing into the run that another process has finished meanwhile.
func TestStopped(t *testing.T) {
	want := undisturbed(t)
	for _, pieces := range []int{5, 20, 70} { // leaves, lanes, and turns of the agent
		t.Run(fmt.Sprint("after ", pieces), func(t *testing.T) {
			t.Parallel()
			v := newVictim(t).overServer()
			v.env = append(v.env, childServes+"="+starts)
			stopped := v.pause(pieces)
			if err := stopped.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			defer stopped.Process.Kill()
			next := v.start("", childServes+"="+takesOver)
			if !v.end(next) {
				t.Fatal("the process was killed by somebody else")
			}
			before := v.trace(next, 0)
			v.compare(before, want, 1)
			if err := stopped.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			v.proceed()
			// It is refused, or takes the run, which has no owner any more, and replays it.
			if stopped.Wait() != nil {
				v.refused(stopped, "is held by")
			} else if stopped.out.String() != want.ids {
				t.Errorf("the process that was stopped ended with\n%swant\n%s", &stopped.out, want.ids)
			}
			after := v.trace(next, 0)
			if !slices.Equal(after.steps, before.steps) || !slices.Equal(after.nodes, before.nodes) || after.rows != before.rows {
				t.Errorf("after the process continued the run has %d steps, %d nodes and %d rows, want %d, %d and %d",
					len(after.steps), len(after.nodes), after.rows, len(before.steps), len(before.nodes), before.rows)
			}
		})
	}
}
