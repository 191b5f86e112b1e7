// Package canon writes canonical JSON: one text for one meaning, so that the
// SHA-256 of the text can serve as the identity of the value.
//
// The form is RFC 8785 (JCS): no white space, object keys in the order of
// their UTF-16 code units, strings with the fewest escapes, numbers as
// ECMAScript prints them. There is one extension: integers keep all their
// digits. RFC 8785 alone reads every number as a float64, and would then give
// 2⁵³ and 2⁵³+1 one text.
//
// Whatever has no such text is refused with an [Error] and never repaired,
// because a repair would give two contents one identity: invalid UTF-8, lone
// surrogates, duplicate keys, NaN and infinities, numbers too large for a
// float64, non-zero numbers so small that a float64 makes them zero.
//
// There are two ways in, and they agree. An [Encoder], compiled once for each
// Go type, writes Go values with the meaning that encoding/json gives them
// (tags, omitempty, embedding, marshalers …). [AppendJSON] rewrites JSON text
// that comes from outside. For any value v that encoding/json can marshal to
// valid UTF-8,
//
//	Append(nil, v) == AppendJSON(nil, json.Marshal(v))
//
// with two exceptions, both refusals. Encoding/json silently replaces invalid
// UTF-8, this package does not. And a type with a part that JSON cannot hold
// (a channel, say) is refused when it is compiled, even if the value at hand
// would never reach that part.
package canon
