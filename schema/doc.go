// Package schema describes values. It infers JSON Schemas (draft 2020-12) from Go types, parses
// them from text, validates JSON against them, and checks whether a consumer can read the values that a producer writes.
//
//	s, err := schema.For[Order]()                   // from a Go type
//	s, err := schema.Parse([]byte(`{"type": …}`))   // from text
//	err := s.Validate(ctx, data)                    // nil or *ValidationError with the problems
//	problems := schema.Compatible(producer, consumer)
//	price, ok := s.At("items", "0", "price")
//
// # Schemas of Go types
//
// The schema of a Go type describes what encoding/json writes for its values. Fields are named by their json tags; "omitempty"
// and "omitzero" make a property optional; pointers, slices and maps may be null; a `jsonschema:"…"` tag describes a property.
// Types that marshal themselves to text are strings; types that marshal themselves to JSON may be any value. A type that contains
// itself is described with $ref.
//
// A closed list of values is taken from a method Enum() []any of the type, or from a tag `enum:"red,green"` on a string field.
//
// # Open and closed objects
//
// The schema of a struct does not forbid additional properties, because Go's decoder ignores them, and a consumer may have fewer
// fields than its producer. [Compatible] and [Schema.At] assume that a producer writes only the listed properties if its schema
// lists some and does not mention others. [Subset.Project] closes every object that lists properties, as the structured output of
// model providers requires.
//
// # Validation
//
// Numbers of any size are compared exactly. As JSON Schema requires, 1.0 counts as an integer, although Go's decoder does not
// accept it for an integer type. The formats and content encodings of a schema are checked too, because an invalid time would fail
// in a later step, which cannot repair it. References can refer only to parts of the schema: nothing is loaded from the network or
// the disk.
//
// Each schema is applied at most once to each place in a value, even if many references lead to the schema. The work is at most
// proportional to the size of the schema times the size of the value, even for hostile input.
//
// # For packages of providers
//
// A [Subset] projects a schema onto the part that a provider enforces, within [SubsetLimits]; [SizeOf] measures the result.
// [ParseForeign] reads schemas from other programs, which may use keywords that are not checked. [ForType] is like [For], but for
// a reflect.Type, and [ListsOf] returns the closed value lists of a Go type.
package schema
