// Package edn reads and writes EDN, Clojure's data notation. Plans and configurations are written in EDN:
//
//	{:op :call, :intent :text/respond, :done {:must #{:non-empty}}}
//
// [Read] returns a [Value], the root of a tree. Each value knows its position in the text, so later checks can report the position
// ([Value.Errorf]). [FromJSON] returns the same kind of tree for JSON: objects become maps with string keys, and arrays become
// vectors. [Value.Name] and [Value.Field] treat keywords in EDN and strings in JSON alike, as names. [ReadEither] detects the
// notation of a text. [ToJSON] converts a value to JSON.
//
// # Accepted text
//
// The package reads everything in the EDN specification, and the forms that Clojure's reader adds: namespaced maps (#:a{:b 1} is
// {:a/b 1}), ##Inf, ##-Inf and ##NaN, characters and strings with \u0041 and \o101. Forms that look like EDN but are not part of
// it are refused with specific errors: ratios, octal and hexadecimal integers, metadata, quotes, lone surrogates, and names such
// as :a/b/c or :1.
//
// Values are never altered: integers can be of any size, and decimals (1.50M) are exact. Floats outside the range of float64 are
// refused, as are duplicate keys and elements, invalid #inst and #uuid values, and anything beyond [Limits]. Unknown tags are
// kept.
//
// # Equality and order
//
// Two values are equal if Clojure's = considers them equal: a list equals a vector, 1 equals 1N but neither 1.0 nor 1.0M, 1.0M
// equals 1.00M, and two #inst values are equal if they denote the same instant. Unlike in Clojure, ##NaN equals itself, so that
// writing a value and reading it back yields an equal value.
//
// [Value.String] writes the keys of maps and the elements of sets in a fixed order: first by kind, in the order of the [Kind]
// constants, then numbers by size and text by bytes. Equal values therefore have the same text, except for lists and vectors, and
// for -0.0 and 0.0. [Format] writes the same text with line breaks.
//
// Values are immutable and can be shared between goroutines.
package edn
