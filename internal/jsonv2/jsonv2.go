// Package jsonv2 is the only package that imports github.com/go-json-experiment/json, which has no stable version yet. If names in
// that module change, only this package must be adapted.
package jsonv2

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	v1 "github.com/go-json-experiment/json/v1"
)

// Types of package jsontext.
type (
	Decoder        = jsontext.Decoder
	Kind           = jsontext.Kind
	Options        = jsontext.Options
	Pointer        = jsontext.Pointer
	SyntacticError = jsontext.SyntacticError
	Value          = jsontext.Value
)

// UnmarshalerFrom is the interface of types that decode themselves from JSON tokens.
type UnmarshalerFrom = json.UnmarshalerFrom

// UnmarshalV1 is like encoding/json.Unmarshal, but twice as fast.
func UnmarshalV1(data []byte, to any) error { return v1.Unmarshal(data, to) }

// Unmarshal decodes a JSON document by the rules of encoding/json/v2.
func Unmarshal(data []byte, to any, opts ...Options) error { return json.Unmarshal(data, to, opts...) }

// lenient accepts duplicate names and invalid UTF-8, as encoding/json does.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// UnmarshalLenient is like Unmarshal, but accepts duplicate names and invalid UTF-8. Use it for data from servers. Unlike in
// UnmarshalV1, the case of names must match, so unknown names can be skipped quickly.
func UnmarshalLenient(data []byte, to any) error { return json.Unmarshal(data, to, lenient) }

// DecodeLenient is like UnmarshalLenient, but decodes the next value of a decoder.
func DecodeLenient(in *Decoder, to any) error { return json.UnmarshalDecode(in, to, lenient) }

// Marshal encodes a value as JSON by the rules of encoding/json/v2.
func Marshal(v any, opts ...Options) ([]byte, error) { return json.Marshal(v, opts...) }

// MarshalWrite is like Marshal, but writes to out.
func MarshalWrite(out io.Writer, v any, opts ...Options) error {
	return json.MarshalWrite(out, v, opts...)
}

// NewDecoder returns a decoder for tokens and values.
func NewDecoder(r io.Reader, opts ...Options) *Decoder { return jsontext.NewDecoder(r, opts...) }

// AppendFormat appends a value in the format that the options select.
func AppendFormat(dst, src []byte, opts ...Options) ([]byte, error) {
	return jsontext.AppendFormat(dst, src, opts...)
}

// AppendQuote appends text as a JSON string.
func AppendQuote(dst []byte, text string) ([]byte, error) { return jsontext.AppendQuote(dst, text) }

// AppendUnquote appends the decoded text of a JSON string.
func AppendUnquote(dst, src []byte) ([]byte, error) { return jsontext.AppendUnquote(dst, src) }

// Options; see packages json and jsontext.
var (
	AllowDuplicateNames   = jsontext.AllowDuplicateNames
	CanonicalizeRawFloats = jsontext.CanonicalizeRawFloats
	CanonicalizeRawInts   = jsontext.CanonicalizeRawInts
	ReorderRawObjects     = jsontext.ReorderRawObjects
	Deterministic         = json.Deterministic
	RejectUnknownMembers  = json.RejectUnknownMembers
)
