//go:build unix && !linux

package sandbox

import "errors"

// confine supports only unconfined commands.
func (o order) confine() error {
	if o.Method == Unconfined {
		return nil
	}
	return errLinux
}

func connector(Method) (string, error) { return "", errLinux }

var errLinux = errors.New("only Linux can confine commands: run this in a container or virtual machine with Linux")

// A link exists only on Linux.
type link struct{}

func newLink() (*link, error)      { return nil, errLinux }
func (*link) files() []uintptr     { return nil }
func (*link) connect(string) error { return nil }
func (*link) close()               {}

func wrapper() (string, error) { return "", errors.New("only Linux has bubblewrap") }

// bubblewrap is never called, because wrapper returns an error.
func (o order) bubblewrap() []string { return []string{o.Wrapper} }
