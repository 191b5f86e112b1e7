//go:build !unix

package confine

import (
	"context"
	"errors"
	"os/exec"
)

// Run returns an error: commands need a Unix system.
func Run(context.Context, Method, Policy, *exec.Cmd) error {
	return errors.New("commands can only be run on a Unix system")
}
