package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// A Method is a mechanism that enforces a policy.
type Method string

// The methods.
const (
	Bubblewrap Method = "bubblewrap"
	Landlock   Method = "landlock"
	Unconfined Method = "unconfined" // enforces nothing but the limits
)

// A Policy grants resources to a command. The zero value grants the system's programs and libraries, the command's executable and
// a temporary directory, but no other files and no network.
type Policy struct {
	// Writable lists directories and files that the command may read and change.
	// They must exist. An entry within another one adds nothing.
	//
	// The names in Protected are read-only directly in each of these directories.
	// List one here by its path to make it writable.
	Writable []string
	// ReadOnly lists directories and files that the command may read and execute.
	// Missing ones are ignored. An entry inside a writable directory becomes
	// read-only there.
	ReadOnly []string
	// Network grants access to the servers that the host can reach, except those on its loopback. It needs Bubblewrap and the
	// program slirp4netns, and supports only IPv4. Without it a command has no network. In both cases the command has its own
	// loopback interface under Bubblewrap. Unix sockets that have an address are never available.
	Network bool
	// Loopback, with Network, grants the host's unrestricted network, including every server on its loopback, where servers often
	// require no authentication.
	Loopback bool
	// Limits restrict the command's resources.
	Limits Limits
	// Method selects how the policy is enforced. Empty means the strongest method
	// that works here, and an error if none works. Unconfined must be set explicitly.
	Method Method
}

// Protected lists the names that are read-only in a writable directory: programs
// outside the sandbox run commands from these directories.
func Protected() []string { return []string{".git", ".stone"} }

// Limits apply to a command and its descendants. Zero means the default; a negative value means unlimited. The context limits a
// command's duration.
type Limits struct {
	Memory    int64         // bytes of all processes together; 4 GiB by default
	Processes int           // concurrent processes; 512 by default
	FileSize  int64         // bytes of each written file; 4 GiB by default
	OpenFiles int           // open files of each process; 4096 by default
	CPU       time.Duration // processor time of each process; unlimited by default
}

func (l Limits) complete() Limits {
	l.Memory = cmp.Or(l.Memory, 4<<30)
	l.Processes = cmp.Or(l.Processes, 512)
	l.FileSize = cmp.Or(l.FileSize, 4<<30)
	l.OpenFiles = cmp.Or(l.OpenFiles, 4096)
	return l
}

// ErrNone reports that no method works on this machine.
var ErrNone = errors.New("no sandbox for commands works here")

// found is the result of Find.
var found struct {
	once   sync.Once
	method Method
	weaker string // why a stronger method does not work, or ""
	err    error
}

// Find returns the strongest method that works on this machine, or ErrNone with the
// reasons. The result is computed once.
func Find() (Method, error) {
	found.once.Do(func() {
		var reasons []string
		for _, m := range []Method{Bubblewrap, Landlock} {
			err := m.Check()
			if err == nil {
				found.method, found.weaker = m, strings.Join(reasons, "; ")
				return
			}
			reasons = append(reasons, fmt.Sprintf("%s: %v", m, err))
		}
		found.err = fmt.Errorf("%w (%s)", ErrNone, strings.Join(reasons, "; "))
	})
	return found.method, found.err
}

// weaker returns the reason why commands are confined by a method weaker than the strongest, or "".
func weaker() string {
	m, err := Find()
	if err != nil || found.weaker == "" {
		return ""
	}
	return fmt.Sprintf("commands are confined by %s only (%s)", m, found.weaker)
}

// Check runs a command under the method. The error says why the method does not work on this machine.
func (m Method) Check() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var output bytes.Buffer
	cmd := Command(ctx, Policy{Method: m}, "/bin/sh", "-c", ":")
	cmd.Dir, cmd.Stderr = "/", &output
	if err := cmd.Run(); err != nil {
		if text, _, _ := strings.Cut(strings.TrimSpace(output.String()), "\n"); text != "" {
			return fmt.Errorf("%w: %s", err, text)
		}
		return err
	}
	return nil
}
