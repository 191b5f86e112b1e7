//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package flock

import (
	"errors"
	"os"
)

func Lock(*os.File) error            { return errors.ErrUnsupported }
func TryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
func Unlock(*os.File) error          { return errors.ErrUnsupported }
