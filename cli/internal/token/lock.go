package token

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/stonelayer/stone/internal/flock"
)

// lock waits for the lock file and returns a function that releases it.
func lock(name string) (release func() error, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	switch err = flock.Lock(f); {
	case err == nil:
		return f.Close, nil
	case errors.Is(err, errors.ErrUnsupported):
		if err = f.Close(); err == nil {
			return create(name + ".held")
		}
		return nil, err
	}
	return nil, errors.Join(err, f.Close())
}

// create waits up to 10 s until nobody has the file, and makes it.
func create(name string) (release func() error, err error) {
	const most = 10 * time.Second
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		switch {
		case err == nil:
			return func() error { return errors.Join(f.Close(), os.Remove(name)) }, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		case time.Since(start) > most:
			return nil, fmt.Errorf("another command has locked %s: remove the file if none is running", name)
		}
	}
}
