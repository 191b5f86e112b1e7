package confine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A Method is a way to enforce a policy.
type Method string

// The methods.
const (
	Bubblewrap Method = "bubblewrap"
	Landlock   Method = "landlock"
	Unconfined Method = "unconfined" // no policy is enforced
)

// A Policy says what a command may use. All paths are absolute.
type Policy struct {
	Writable []string // directories and files that it may change; they must exist
	ReadOnly []string // that it may read and execute; missing ones are left out
	Network  bool     // it may use the network of the host
}

// Grace is how long a command has to end after SIGTERM before it is killed.
const Grace = 2 * time.Second

// drain is how long output is read on after the command has ended, if a process
// that it has left behind holds its output open.
const drain = time.Second

// ErrNone says that no method works on this machine.
var ErrNone = errors.New("no sandbox for commands works here")

// Find returns the strongest method that works on this machine, or ErrNone with the
// reasons. The answer is remembered.
func Find() (Method, error) { return find() }

var find = sync.OnceValues(func() (Method, error) {
	var reasons []string
	for _, m := range []Method{Bubblewrap, Landlock} {
		err := m.Check()
		if err == nil {
			return m, nil
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", m, err))
	}
	return "", fmt.Errorf("%w (%s)", ErrNone, strings.Join(reasons, "; "))
})

// Check tries the method and says why it does not work on this machine.
func (m Method) Check() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var output bytes.Buffer
	cmd := exec.Command("/bin/sh", "-c", ":")
	cmd.Dir, cmd.Stderr = "/", &output
	if err := Run(ctx, m, Policy{}, cmd); err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(output.String()), "\n")
		return errors.Join(err, textError(text))
	}
	return nil
}

func textError(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
