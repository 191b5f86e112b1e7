//go:build !unix

package sqlite

import "errors"

func setUser(int) error { return errors.New("processes of other users need Unix") }
