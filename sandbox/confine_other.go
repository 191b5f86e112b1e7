//go:build unix && !linux

package sandbox

import "errors"

// confine only supports unconfined commands.
func (o order) confine() error {
	if o.Method == Unconfined {
		return nil
	}
	return errors.New("only Linux can confine commands")
}

func (r reach) bubblewrap(bool, string) ([]string, error) {
	return nil, errors.New("only Linux has bubblewrap")
}
