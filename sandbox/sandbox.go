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
	// Writable contains the paths of directories and files that the command may read and change. They must exist. A path within
	// another of these paths has no effect of its own.
	//
	// Directly within each of these directories, the names in Protected are read-only. To make one of them writable, add its path
	// to Writable.
	Writable []string
	// ReadOnly contains the paths of directories and files that the command may read and execute. Paths that do not exist are
	// ignored. A path within a writable directory becomes read-only.
	ReadOnly []string
	// Network grants access to the servers that the host can reach, except servers on the host's loopback interface. It requires
	// Bubblewrap and the program slirp4netns, and supports only IPv4. Without Network, a command has no network. In both cases, a
	// command under Bubblewrap has a loopback interface of its own. Unix sockets that have an address are never available.
	Network bool
	// Loopback, together with Network, grants unrestricted access to the host's network, including every server on its loopback
	// interface, where servers often require no authentication.
	Loopback bool
	// Limits are the limits on the command's resources.
	Limits Limits
	// Method is the mechanism that enforces the policy. Empty means the strongest method that works on this machine; if none works,
	// the command is refused. Unconfined must be set explicitly.
	Method Method
}

// Protected returns the names of directories that are read-only within a writable directory. They are protected because programs
// outside the sandbox run commands from them.
func Protected() []string { return []string{".git", ".stone"} }

// Limits are limits on the resources of a command and its descendants. Zero means the default, and a negative value means
// unlimited. To limit a command's duration, use its context.
type Limits struct {
	Memory    int64         // total memory of all processes, in bytes; 4 GiB by default
	Processes int           // number of concurrent processes; 512 by default
	FileSize  int64         // size of each written file, in bytes; 4 GiB by default
	OpenFiles int           // open files per process; 4096 by default
	CPU       time.Duration // processor time of each process; unlimited by default
}

func (l Limits) complete() Limits {
	l.Memory = cmp.Or(l.Memory, 4<<30)
	l.Processes = cmp.Or(l.Processes, 512)
	l.FileSize = cmp.Or(l.FileSize, 4<<30)
	l.OpenFiles = cmp.Or(l.OpenFiles, 4096)
	return l
}

// ErrNone means that no method of confining commands works on this machine.
var ErrNone = errors.New("no sandbox for commands works here")

// found contains the result of Find.
var found struct {
	once   sync.Once
	method Method
	weaker string // reason why a stronger method does not work; "" if there is none
	err    error
}

// Find returns the strongest method that works on this machine. If none works, the error wraps ErrNone and contains the reasons.
// Find tries the methods only once and remembers the result.
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

// weaker returns the reason why commands are not confined by the strongest method. It returns "" if they are, or if no method
// works.
func weaker() string {
	m, err := Find()
	if err != nil || found.weaker == "" {
		return ""
	}
	return fmt.Sprintf("commands are confined by %s only (%s)", m, found.weaker)
}

// Check runs a command under the method. If the method does not work on this machine, it returns an error with the reason.
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
