package load

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/stonelayer/stone/internal/text"
)

// A Program is the file name of an executable that was built for one pipeline. The file is in the go command's build cache.
type Program string

// Run runs the program under the given name and returns its exit code. The error is non-nil if the program could not be started
// or was killed by a signal.
//
// SIGTERM is passed on unchanged, and every other signal as SIGHUP. This keeps one Ctrl-C from counting twice: a terminal also
// sends the interrupt to the program directly, and the program counts each kind of signal separately. On the third signal of a
// kind, Run kills the program. On Linux, the program dies with this process.
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
			// Signal fails if the program has ended, which Wait reports.
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
		return 0, fmt.Errorf("the pipeline's program was killed: %v", state)
	case err != nil && !errors.As(err, &failed):
		return 0, fmt.Errorf("the pipeline's program: %w", err)
	default:
		return code, nil
	}
}

var position = regexp.MustCompile(`^(\S.*?\.go):(\d+(?::\d+)?): (.*)$`)

// compileError returns the errors from the go command condensed to one line: the first error, with its position relative to the
// working directory, and the number of other errors.
func (b *builder) compileError(stderr string, err error) error {
	var first string
	more := 0
	lines := strings.Split(stderr, "\n")
	for i, line := range lines {
		at := position.FindStringSubmatch(line)
		switch {
		case at == nil:
		case first != "":
			more++
		default:
			first = fmt.Sprintf("%s:%s: %s%s", b.seen(at[1]), at[2], at[3], indented(lines[i+1:]))
		}
	}
	if first == "" {
		return refuse("%s does not compile: %s", b.arg, firstLine(stderr, err))
	}
	if more > 0 {
		first += fmt.Sprintf(" (and %d more)", more)
	}
	return refuse("%s does not compile: %s", b.arg, text.Line(first))
}

// indented returns a message joined with the indented lines that continue it.
func indented(lines []string) string {
	var out strings.Builder
	for _, line := range lines {
		if !strings.HasPrefix(line, "\t") {
			break
		}
		out.WriteString(" " + strings.TrimSpace(line))
	}
	return out.String()
}

// seen returns a path, as printed by the go command, relative to the working directory.
func (b *builder) seen(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.dir, path)
	}
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(here, abs); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return abs
}

// firstLine returns the message of the go command on one line, without its prefix. If the go command printed nothing, it returns
// err.
func firstLine(stderr string, err error) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "go: downloading") || strings.TrimSpace(line) == "" {
			continue
		}
		return text.Line(strings.TrimPrefix(line, "go: ") + indented(lines[i+1:]))
	}
	return fmt.Sprint(err)
}
