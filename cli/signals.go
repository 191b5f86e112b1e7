package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/kind"
)

// sameSignal is the time within which a second SIGTERM counts as a repetition of the first: a service manager sends the signal to
// all processes of a service, and the command stone passes it on to them as well.
const sameSignal = time.Second

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP cancels, and a channel. Resume is the command that
// resumes the run; if it is not empty, SIGTERM closes the channel instead of cancelling the context. A second signal of the same
// kind ends the process. Kinds are counted separately, because a program started by a stone command receives one Ctrl-C twice:
// from the terminal, and as SIGHUP from that command. The returned function stops the handling of signals.
func interruptible(ctx context.Context, say func(string), resume string) (context.Context, <-chan struct{}, func()) {
	return stoppable(ctx, say, resume, false)
}

// drainable is like interruptible, but for a server: the first signal of any kind closes the channel, and the context is not
// cancelled.
func drainable(ctx context.Context, say func(string), resume string) (context.Context, <-chan struct{}, func()) {
	return stoppable(ctx, say, resume, true)
}

// stoppable is the implementation of interruptible and drainable.
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
					say("failed: " + string(kind.Canceled) + ": ended at once; the results of running steps are lost")
					if resume != "" {
						say("to continue with the recorded steps: " + resume)
					}
					os.Exit(Failed)
				case server && drained: // a second signal, of another kind, changes nothing
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
			signal.Ignore(syscall.SIGHUP) // the stone command passes on the same Ctrl-C
		}
		signal.Stop(signals)
		cancel(nil)
	}
}

// sender describes a signal's sender.
func sender(sig os.Signal) string {
	switch sig {
	case os.Interrupt:
		return "Ctrl-C"
	case syscall.SIGHUP:
		return "Ctrl-C or the end of its terminal"
	}
	return fmt.Sprintf("the signal %v", sig)
}

// mostCrashes is the size in bytes above which the next process truncates the crash file.
const mostCrashes = 1 << 20

// crashFile returns the name of the file to which the Go runtime writes if a process of the command crashes.
func crashFile() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "stone", "crashes.txt"), err
}

// keepCrashes makes the runtime also write crashes to a file, which the doctor command reads. If the file cannot be opened,
// crashes are only printed.
func keepCrashes() {
	name, err := crashFile()
	if err != nil || os.MkdirAll(filepath.Dir(name), 0o700) != nil {
		return
	}
	if info, err := os.Stat(name); err == nil && info.Size() > mostCrashes {
		_ = os.Truncate(name, 0) // if this fails, the file becomes longer by one crash
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	_ = debug.SetCrashOutput(f, debug.CrashOptions{}) // the runtime has its own duplicate of f
	f.Close()
}

// lastCrash returns the first line of the latest crash's report, and the time of the crash. If there was no crash, the line is
// "".
func lastCrash() (line string, at time.Time, err error) {
	name, err := crashFile()
	if err != nil {
		return "", at, err
	}
	f, err := os.Open(name)
	if err != nil {
		if os.IsNotExist(err) {
			err = nil
		}
		return "", at, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		at = info.ModTime()
	}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 2*mostCrashes)
	for in.Scan() {
		if text := in.Text(); strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ") || strings.HasPrefix(text, "SIG") {
			line = text
		}
	}
	return line, at, in.Err()
}
