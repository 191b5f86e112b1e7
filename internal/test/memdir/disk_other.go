//go:build !linux

package memdir

import "errors"

func spacious(string) bool { return false }

func mount(string, string) error { return errors.ErrUnsupported }

func unmount(string) error { return errors.ErrUnsupported }
