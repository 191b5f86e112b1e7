// Package edn reads and writes EDN, Clojure's data notation, in which plans and configurations are written:
//
//	{:op :call, :intent :text/respond, :done {:must #{:non-empty}}}
//
// [Read] returns a [Value], the root of a tree. Each part knows its place in the text, so
// that later checks can name that place ([Value.Errorf]). [FromJSON] returns the same
// tree for JSON: objects are maps with strings for keys, arrays are vectors. [Value.Name]
// and [Value.Field] read the keyword of one notation and the string of the other as one
// name. [ReadEither] recognises the notation. [ToJSON] converts a value to JSON.
//
// # Accepted text
//
// The package reads the whole format of the specification, and the forms that Clojure's
// own reader adds: namespaced maps (#:a{:b 1} is {:a/b 1}), ##Inf, ##-Inf and ##NaN,
// characters and strings with \u0041 and \o101. Forms that look like EDN but are not are
// refused by name: ratios, octal and hexadecimal integers, metadata, quotes, lone
// surrogates, names like :a/b/c or :1.
//
// No value is changed. Integers have any size and decimals (1.50M) are exact. Floats
// beyond the range of a float64 are refused, as are duplicate keys and elements, bad
// #inst and #uuid, and anything beyond [Limits]. Other tags are kept.
//
// # Equality and order
//
// Two values are equal if Clojure's = says so: a list equals a vector, 1 equals 1N but neither 1.0 nor 1.0M, 1.0M equals 1.00M,
// two #inst are equal when they mean the same instant. Unlike in Clojure, ##NaN equals itself, so that every value equals the one
// read from its own text.
//
// [Value.String] writes the keys of maps and the elements of sets in a fixed order: by kind in the order of the constants of
// [Kind], numbers by size, text by its bytes. Equal values therefore have the same text, except for lists and vectors, and for
// -0.0 and 0.0. [Format] writes the same with line breaks.
//
// Values never change and may be shared between goroutines.
package edn
