//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package token

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// lock waits up to 10 s for the lock file and returns a function that releases it.
func lock(name string) (release func() error, err error) {
	const most = 10 * time.Second
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		switch {
		case err == nil:
			return func() error { return errors.Join(f.Close(), os.Remove(name)) }, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		case time.Since(start) > most:
			return nil, fmt.Errorf("another command holds %s: remove the file if none is running", name)
		}
	}
}
