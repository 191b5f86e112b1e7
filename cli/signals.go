package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/kind"
)

// sameSignal is how soon a second SIGTERM is the first one again: who stops a
// service tells it to all of its processes, and stone passes it on as well.
const sameSignal = time.Second

// interruptible returns a context that the first signal to end cancels, and a
// channel that SIGTERM closes in place of that if the run can be resumed, which the
// command resume does. The second signal of its sort ends the process. Each sort counts for itself, since
// one Ctrl-C reaches a program that a stone command runs twice: from the terminal,
// and as SIGHUP from that command. The function stops it.
func interruptible(ctx context.Context, say func(string), resume string) (context.Context, <-chan struct{}, func()) {
	return stoppable(ctx, say, resume, false)
}

// drainable is interruptible for a server: the first signal of any sort closes the channel, and
// the context is not cancelled.
func drainable(ctx context.Context, say func(string), resume string) (context.Context, <-chan struct{}, func()) {
	return stoppable(ctx, say, resume, true)
}

func stoppable(ctx context.Context, say func(string), resume string, server bool) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	drain, stop := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	canceled, drained := false, false
	done.Go(func() {
		seen := map[os.Signal]time.Time{}
		for {
			select {
			case sig := <-signals:
				first, again := seen[sig]
				switch {
				case again && sig == syscall.SIGTERM && time.Since(first) < sameSignal:
					continue
				case again:
					say("failed: " + string(kind.Canceled) + ": ended at once, the results of running steps are lost")
					if resume != "" {
						say("to continue with the recorded steps: " + resume)
					}
					os.Exit(Failed)
				case server && drained:
				case server:
					say("ending: no new step starts, running steps may finish; Ctrl-C again ends at once")
					close(drain)
					drained = true
				case resume != "" && sig == syscall.SIGTERM && !canceled:
					say("ending: no new step starts, running steps may finish; Ctrl-C cancels them")
					close(drain)
				case !canceled:
					say("canceling: waiting for running steps; Ctrl-C again ends at once")
					cancel(stone.Fail(kind.Canceled, "the run was ended by %s", sender(sig)))
					canceled = true
				}
				seen[sig] = time.Now()
			case <-stop:
				return
			}
		}
	})
	return ctx, drain, func() {
		close(stop)
		done.Wait()
		if canceled || drained {
			signal.Ignore(syscall.SIGHUP) // the same Ctrl-C, passed on by a stone command
		}
		signal.Stop(signals)
		cancel(nil)
	}
}

// sender says where a signal comes from.
func sender(sig os.Signal) string {
	if sig == syscall.SIGHUP {
		return "Ctrl-C, or with its terminal"
	}
	return fmt.Sprintf("a signal: %v", sig)
}
