package model

import (
	"errors"

	"github.com/stonelayer/stone/internal/edn"
)

// planShaped tells whether a text could be a plan: a map with nodes. What is in it is
// checked by whoever runs it.
func planShaped(text string) error {
	v, err := edn.ReadEither([]byte(text), edn.Limits{})
	if err != nil {
		return err
	}
	if _, ok := v.Field("nodes"); v.Kind() != edn.KindMap || !ok {
		return errors.New("want a map with nodes")
	}
	return nil
}
