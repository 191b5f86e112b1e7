// Package schema says what a value looks like: it makes JSON Schemas (draft 2020-12) from Go
// types, reads them from text, validates JSON against them, and tells whether what one schema
// describes can be read by another.
//
//	s, err := schema.For[Order]()                   // from a Go type
//	s, err := schema.Parse([]byte(`{"type": …}`))   // from text
//	err := s.Validate(ctx, data)                    // nil or *ValidationError with the problems
//	problems := schema.Compatible(producer, consumer)
//	price, ok := s.At("items", "0", "price")
//
// # Schemas of Go types
//
// The schema of a Go type describes what encoding/json writes for its values. Fields are named
// by their json tags; "omitempty" and "omitzero" make a property optional; pointers, slices and
// maps may be null; a `jsonschema:"…"` tag is the description of a property. Types that write
// themselves as text are strings, types that write their own JSON are anything. A type that
// contains itself is described with $ref.
//
// A closed list of values comes from a method Enum() []any of the type, or from a tag
// `enum:"red,green"` on a string field.
//
// # Open and closed objects
//
// The schema of a struct does not forbid further properties, because Go's decoder ignores them:
// a consumer may have fewer fields than its producer. But an object schema that lists its
// properties and is silent about others is taken at its word by [Compatible] and [Schema.At]:
// it writes the listed ones and no other. [Schema.Strict] closes every object, as the structured
// output of model providers wants it.
//
// # Validation
//
// Numbers are compared exactly, whatever their size; as in every JSON Schema 1.0 is an integer, though
// Go's decoder does not take it for one. The formats and content encodings that a
// schema names are checked too: a time that is no time would fail one step later, where nobody
// can repair it. References lead to places inside the schema only; nothing is ever loaded from
// the network or the disk.
//
// A schema is applied to a place of a value once, however many references lead to it, so that
// work is bounded by the size of the schema times that of the value, whoever wrote them.
package schema
