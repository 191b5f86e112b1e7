package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/kind"
)

// interruptible returns a context that the first signal to end cancels; the
// second of its sort ends the process. Each sort counts for itself, since one
// Ctrl-C reaches a program that a stone command runs twice: from the terminal,
// and as SIGTERM from that command. The function stops it.
func interruptible(ctx context.Context, say func(string)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		seen := map[os.Signal]bool{}
		for {
			select {
			case sig := <-signals:
				if seen[sig] {
					say("failed: " + kind.Canceled + ": ended at once, what was under way is lost")
					os.Exit(Failed)
				}
				if len(seen) == 0 {
					say("canceling: waiting for the steps under way; Ctrl-C again ends at once")
					cancel(stone.Fail(kind.Canceled, "the run was ended by a signal: %v", sig))
				}
				seen[sig] = true
			case <-stop:
				return
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(stop)
		done.Wait()
		cancel(nil)
	}
}
