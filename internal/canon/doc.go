// Package canon writes canonical JSON: values of equal meaning have equal texts, so that
// the SHA-256 of the text can serve as the identity of the value.
//
// The form is RFC 8785 (JCS): no white space, object keys in the order of their UTF-16 code units, strings with the fewest
// escapes, numbers as ECMAScript prints them. There is one extension: integers keep all their digits. RFC 8785 alone reads every
// number as a float64, so 2⁵³ and 2⁵³+1 would have the same text.
//
// A value without such a text is refused with an [Error] and never repaired, because a repair would give two contents one
// identity. These are refused: invalid UTF-8, lone surrogates, duplicate keys, NaN and infinities, numbers too large for a
// float64, and non-zero numbers so small that a float64 makes them zero.
//
// Two functions produce the same text. An [Encoder], compiled once for each Go type, writes Go values with the meaning that
// encoding/json gives them (tags, omitempty, embedding, marshalers …). [AppendJSON] rewrites external JSON text. For any value v
// that encoding/json can marshal to valid UTF-8,
//
//	Append(nil, v) == AppendJSON(nil, json.Marshal(v))
//
// with two exceptions, both refusals. Encoding/json silently replaces invalid UTF-8; this package refuses it. And a type with a
// part that has no JSON form (such as a channel) is refused when it is compiled, even if the actual value would never reach that
// part.
package canon
