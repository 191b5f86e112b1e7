// Package regular reads untrusted files, such as files in a checkout. It refuses devices, pipes and files that are too large
// before it reads anything.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Maximum sizes of files in bytes.
const (
	Config = 8 << 20   // for files that are read into memory: configurations, plans, tokens, secrets
	Source = 256 << 20 // for files of which only a digest is computed
)

// Open opens a regular file that has at most limit bytes. It follows symbolic links, and never waits for a writer. Errors are of
// type *fs.PathError.
func Open(path string, limit int64) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("not a regular file")
	case info.Size() > limit:
		err = tooLarge(limit)
	default:
		return f, nil
	}
	return nil, errors.Join(wrap(path, err), f.Close())
}

// Read opens a file like Open, and reads it. It also returns an error if the file grows beyond the limit.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = wrap(path, tooLarge(limit))
	}
	return data, err
}

func tooLarge(limit int64) error { return fmt.Errorf("larger than %d MiB", limit>>20) }

func wrap(path string, err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	return &fs.PathError{Op: "read", Path: path, Err: err}
}
