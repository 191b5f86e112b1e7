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
	Unconfined Method = "unconfined" // enforces only the limits
)

// A Policy grants resources to a command. The zero value grants the system's programs and libraries, the command's executable and
// a temporary directory, but no other files and no network.
type Policy struct {
	// Writable lists directories and files that the command may read and change. They must exist. An entry within another entry
	// adds nothing.
	//
	// Directly within each of these directories, the names in Protected are read-only. To make one of them writable, list its
	// path here.
	Writable []string
	// ReadOnly lists directories and files that the command may read and execute. Missing entries are ignored. An entry within a
	// writable directory becomes read-only.
	ReadOnly []string
	// Network grants access to the servers that the host can reach, except servers on the host's loopback interface. It requires
	// Bubblewrap and the program slirp4netns, and supports only IPv4. Without Network, a command has no network. In both cases, a
	// command under Bubblewrap has a loopback interface of its own. Unix sockets that have an address are never available.
	Network bool
	// Loopback, together with Network, grants unrestricted access to the host's network, including every server on its loopback
	// interface, where servers often require no authentication.
	Loopback bool
	// Limits restrict the command's resources.
	Limits Limits
	// Method selects how the policy is enforced. Empty means the strongest method
	// that works here, and an error if none works. Unconfined must be set explicitly.
	Method Method
}

// Protected returns the names that are read-only in a writable directory, because programs outside the sandbox run commands from
// these directories.
func Protected() []string { return []string{".git", ".stone"} }

// Limits apply to a command and its descendants. Zero means the default; a negative value means unlimited. The context limits a
// command's duration.
type Limits struct {
	Memory    int64         // the memory of all processes together, in bytes; 4 GiB by default
	Processes int           // the number of concurrent processes; 512 by default
	FileSize  int64         // the size of each written file, in bytes; 4 GiB by default
	OpenFiles int           // the number of open files of each process; 4096 by default
	CPU       time.Duration // the processor time of each process; unlimited by default
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

// weaker returns the reason why commands are confined by a weaker method than the strongest one, or "".
func weaker() string {
	m, err := Find()
	if err != nil || found.weaker == "" {
		return ""
	}
	return fmt.Sprintf("commands are confined by %s only (%s)", m, found.weaker)
}

// Check runs a command under the method. An error says why the method does not work on this machine.
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
