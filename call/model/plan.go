package model

import (
	"errors"

	"github.com/stonelayer/stone/internal/edn"
)

// planShaped checks that a text could be a plan: a map with nodes. The planner checks the
// rest.
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
