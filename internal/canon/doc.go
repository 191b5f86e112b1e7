// Package canon writes canonical JSON: values with the same meaning have the same text, so the SHA-256 of the text can identify
// the value.
//
// The format is RFC 8785 (JCS): no white space, object keys sorted by their UTF-16 code units, strings with as few escapes as
// possible, and numbers as ECMAScript prints them. There is one extension: integers keep all their digits. RFC 8785 itself treats
// every number as a float64, so 2⁵³ and 2⁵³+1 would have the same text.
//
// A value that has no canonical text is refused with an [Error]. It is never repaired, because two different contents would then
// have the same identity. The package refuses invalid UTF-8, lone surrogates, duplicate keys, NaN and infinities, numbers too
// large for a float64, and non-zero numbers so small that they would become zero as a float64.
//
// There are two ways to produce the text. An [Encoder], compiled once for each Go type, writes Go values as encoding/json
// interprets them (tags, omitempty, embedding, marshalers …). [AppendJSON] converts JSON text from other sources. For any value v
// that encoding/json can marshal to valid UTF-8,
//
//	Append(nil, v) == AppendJSON(nil, json.Marshal(v))
//
// with two exceptions, in which this package is stricter. It refuses invalid UTF-8, which encoding/json silently replaces. And it
// refuses any type with a part that has no JSON form (such as a channel) when the type is compiled, even if that part is never
// reached in the actual value.
package canon
