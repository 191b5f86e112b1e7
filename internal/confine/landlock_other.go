//go:build unix && !linux

package confine

import "errors"

// confineThread returns an error: only Linux has Landlock.
func (p Policy) confineThread(int) error {
	return errors.New("only Linux has Landlock")
}
