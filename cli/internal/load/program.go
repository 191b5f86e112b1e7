package load

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// A Program is the file of the built command line of one pipeline. It is in the
// build cache of the go command.
type Program string

// Run runs the program under the name and returns its exit code. The error is not
// nil if the program could not be started, or was killed by a signal.
//
// SIGTERM is passed on as it is, every other signal as SIGHUP: an interrupt from a
// terminal reaches the program directly as well, and the program counts each sort of
// signal separately, so that one Ctrl-C counts once. After three of a sort, Run kills
// the program. On Linux the program dies with this process.
func (p Program) Run(name string, args []string, stdin io.Reader, stdout, stderr io.Writer, signals <-chan os.Signal) (code int, err error) {
	cmd := exec.Command(string(p), args...)
	cmd.Args[0] = name
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	defer bind(cmd)()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the pipeline's program: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	seen := map[os.Signal]int{}
	for {
		select {
		case sig := <-signals:
			seen[sig]++
			pass := syscall.SIGHUP
			switch {
			case seen[sig] >= 3:
				pass = syscall.SIGKILL
			case sig == syscall.SIGTERM:
				pass = syscall.SIGTERM
			}
			// It fails when the program has ended, which Wait reports.
			_ = cmd.Process.Signal(pass)
		case err := <-ended:
			return exitCode(cmd.ProcessState, err)
		}
	}
}

func exitCode(state *os.ProcessState, err error) (int, error) {
	if state == nil {
		return 0, fmt.Errorf("the pipeline's program: %w", err)
	}
	var failed *exec.ExitError
	switch code := state.ExitCode(); {
	case code < 0:
		return 0, fmt.Errorf("the pipeline's program was ended from outside: %v", state)
	case err != nil && !errors.As(err, &failed):
		return 0, fmt.Errorf("the pipeline's program: %w", err)
	default:
		return code, nil
	}
}
