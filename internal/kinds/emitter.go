package kinds

import "github.com/stonelayer/stone/schema"

// An Emitter is the Detail of a leaf that emits the result of a plan. Package eval compares scorers with its schemas.
type Emitter interface {
	// Emits returns the schema of the emission as "", and those of its fields by their paths, as ".order.total". A nil
	// schema accepts anything.
	Emits() map[string]*schema.Schema
}
