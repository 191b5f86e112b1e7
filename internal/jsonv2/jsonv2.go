// Package jsonv2 is the only package that imports github.com/go-json-experiment/json, which has no stable version yet: if its
// names change, only this package must change.
package jsonv2

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	v1 "github.com/go-json-experiment/json/v1"
)

// Types of the text layer.
type (
	Decoder        = jsontext.Decoder
	Kind           = jsontext.Kind
	Options        = jsontext.Options
	Pointer        = jsontext.Pointer
	SyntacticError = jsontext.SyntacticError
	Value          = jsontext.Value
)

// UnmarshalerFrom is a type that decodes its JSON itself, from the tokens.
type UnmarshalerFrom = json.UnmarshalerFrom

// UnmarshalV1 is like encoding/json.Unmarshal, at twice its speed.
func UnmarshalV1(data []byte, to any) error { return v1.Unmarshal(data, to) }

// Unmarshal follows the rules of encoding/json/v2.
func Unmarshal(data []byte, to any, opts ...Options) error { return json.Unmarshal(data, to, opts...) }

// lenient accepts the same as encoding/json: duplicate names, and invalid UTF-8.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// UnmarshalLenient reads data from a server: it accepts duplicate names and invalid UTF-8. Unlike with UnmarshalV1, names must
// match in case, which makes skipping unknown names cheap.
func UnmarshalLenient(data []byte, to any) error { return json.Unmarshal(data, to, lenient) }

// DecodeLenient is UnmarshalLenient for the next value of a decoder.
func DecodeLenient(in *Decoder, to any) error { return json.UnmarshalDecode(in, to, lenient) }

// Marshal follows the rules of encoding/json/v2.
func Marshal(v any, opts ...Options) ([]byte, error) { return json.Marshal(v, opts...) }

// MarshalWrite is Marshal to a writer.
func MarshalWrite(out io.Writer, v any, opts ...Options) error {
	return json.MarshalWrite(out, v, opts...)
}

// NewDecoder reads tokens and values.
func NewDecoder(r io.Reader, opts ...Options) *Decoder { return jsontext.NewDecoder(r, opts...) }

// AppendFormat appends a value in the format that the options select.
func AppendFormat(dst, src []byte, opts ...Options) ([]byte, error) {
	return jsontext.AppendFormat(dst, src, opts...)
}

// AppendQuote appends text as a JSON string.
func AppendQuote(dst []byte, text string) ([]byte, error) { return jsontext.AppendQuote(dst, text) }

// AppendUnquote appends the text of a JSON string.
func AppendUnquote(dst, src []byte) ([]byte, error) { return jsontext.AppendUnquote(dst, src) }

// Options, as in the packages json and jsontext.
var (
	AllowDuplicateNames   = jsontext.AllowDuplicateNames
	CanonicalizeRawFloats = jsontext.CanonicalizeRawFloats
	CanonicalizeRawInts   = jsontext.CanonicalizeRawInts
	ReorderRawObjects     = jsontext.ReorderRawObjects
	Deterministic         = json.Deterministic
	RejectUnknownMembers  = json.RejectUnknownMembers
)
