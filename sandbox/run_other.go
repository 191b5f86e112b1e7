//go:build !unix

package sandbox

import "errors"

func (c *Cmd) run() error {
	return errors.New("sandbox: commands can only be run on a Unix system")
}
