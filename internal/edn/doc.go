// Package edn reads and writes EDN, the notation of Clojure's data, in which
// plans and configurations are written:
//
//	{:op :call, :intent :text/respond, :done {:must #{:non-empty}}}
//
// [Read] gives a [Value], the root of a tree that knows where in the text each
// of its parts stands, so that whoever finds a fault in the data later can
// still name its place ([Value.Errorf]). [FromJSON] gives the same tree for
// JSON, whose objects are maps with strings for keys and whose arrays are
// vectors; [Value.Name] and [Value.Field] read the keyword of one notation and
// the string of the other as one name. [ReadEither] tells the two notations
// apart. [ToJSON] goes the other way.
//
// # What is read
//
// All of the format as its specification has it, with the forms that Clojure's
// own reader adds: namespaced maps (#:a{:b 1} is {:a/b 1}), ##Inf, ##-Inf and
// ##NaN, characters and strings with \u0041 and \o101. What looks like EDN but
// is not is refused with its name: ratios, octal and hexadecimal integers,
// metadata, quotes, lone surrogates, names like :a/b/c or :1.
//
// Nothing is lost or made up. Integers have any size and decimals (1.50M) are
// exact. A float that a float64 cannot hold is refused, as are duplicate keys
// and elements, bad #inst and #uuid, and what [Limits] forbids. Other tags are
// kept as they are.
//
// # Equality and order
//
// Two values are equal as Clojure's = has it: a list equals a vector, 1 equals
// 1N but neither 1.0 nor 1.0M, 1.0M equals 1.00M, two #inst are equal when they
// mean one instant. Unlike there, ##NaN equals itself, so that every value
// equals what is read from its own text.
//
// [Value.String] writes the keys of maps and the elements of sets in a fixed
// order: by kind as the constants of [Kind] are listed, numbers by size, text
// by its bytes. Equal values therefore have one text, but for lists beside
// vectors and -0.0 beside 0.0. [Format] writes the same with line breaks.
//
// Values never change and may be shared between goroutines.
package edn
