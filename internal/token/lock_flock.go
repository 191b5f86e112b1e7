//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package token

import (
	"errors"
	"os"
	"syscall"
)

// lock waits for the lock file and returns a function that releases it. The system releases
// the lock of a process that dies.
func lock(name string) (release func() error, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(&os.PathError{Op: "lock", Path: name, Err: err}, f.Close())
	}
	return f.Close, nil
}
