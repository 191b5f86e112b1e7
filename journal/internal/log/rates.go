package log

import (
	"context"
	"time"
)

// ShareRate implements limit.Store. It uses transactions of its own, so that no step waits for other
// processes that share the rate.
func (j *Journal) ShareRate(_ context.Context, name string, change func(state []byte, now time.Time) []byte) error {
	name = Column(name)
	return j.out.write(&write{rate: name, do: func(t *transaction) error {
		state, now, err := t.Rate(name)
		if err != nil {
			return err
		}
		return t.PutRate(name, change(state, now))
	}})
}
