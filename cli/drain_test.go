//go:build unix

package cli

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// The first signal of any kind drains a server, which prints it. The context is not cancelled, and
// a signal of another kind changes nothing.
func TestDrainable(t *testing.T) {
	// A signal may be delivered after stop: it must not end the process then.
	heard := make(chan os.Signal, 2)
	signal.Notify(heard, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(heard)
	said := make(chan string, 8)
	ctx, drain, stop := drainable(t.Context(), func(line string) { said <- line }, "stone serve")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		<-heard
		<-drain
	}
	if line := <-said; !strings.HasPrefix(line, "ending: no new step starts") || ctx.Err() != nil {
		t.Errorf("said %q, %v", line, ctx.Err())
	}
	stop()
	if len(said) > 0 {
		t.Errorf("said also %q", <-said)
	}
}
