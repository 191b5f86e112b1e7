package otlp

import (
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/x/internal/spans"
)

// Kinds of spans and codes of states in the protocol.
const (
	internalKind = 1
	clientKind   = 3
	statusError  = 2
)

const (
	maxText   = 8 << 10 // bytes of a text in an attribute
	maxEvents = 128     // of a span; OpenTelemetry's SDKs have the same limit

	spanSize, attrSize = 256, 64 // bytes in memory besides texts, about
)

// A span is a span of the protocol, completed while it is open.
type span struct {
	TraceID      id          `json:"traceId"`
	SpanID       id          `json:"spanId"`
	Parent       id          `json:"parentSpanId,omitempty"`
	Name         string      `json:"name"`
	Kind         int         `json:"kind"`
	Start        integer     `json:"startTimeUnixNano"`
	Ended        integer     `json:"endTimeUnixNano"`
	Attrs        attributes  `json:"attributes,omitempty"`
	DroppedAttrs int         `json:"droppedAttributesCount,omitempty"`
	Events       []happening `json:"events,omitempty"`
	Dropped      int         `json:"droppedEventsCount,omitempty"`
	Status       *status     `json:"status,omitempty"`

	emitter
	size int // bytes, about
}

type happening struct {
	Time  integer    `json:"timeUnixNano"`
	Name  string     `json:"name"`
	Attrs attributes `json:"attributes,omitempty"`
}

// An id is written in hexadecimal digits.
type id []byte

func (i id) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, i), nil }

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

// An integer is written as a string, since numbers in JSON lose digits. Times are nanoseconds since 1970.
type integer int64

func (n integer) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(int64(n), 10)), nil
}

type attributes []attribute

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

// Exactly one field of a value is set.
type value struct {
	String *string  `json:"stringValue,omitempty"`
	Bool   *bool    `json:"boolValue,omitempty"`
	Int    *integer `json:"intValue,omitempty"`
	Double *float64 `json:"doubleValue,omitempty"`
	Array  *texts   `json:"arrayValue,omitempty"`
}

type texts struct {
	Values []value `json:"values"`
}

// set sets the attribute; the last value counts.
func (a *attributes) set(key string, v value) {
	for i := range *a {
		if (*a)[i].Key == key {
			(*a)[i].Value = v
			return
		}
	}
	*a = append(*a, attribute{key, v})
}

// add returns about how many bytes it has added.
func (a *attributes) add(attrs []slog.Attr) (size int) {
	for _, attr := range attrs {
		v := valueOf(attr.Value)
		a.set(attr.Key, v)
		size += attrSize + len(attr.Key)
		if v.String != nil {
			size += len(*v.String)
		}
	}
	return size
}

// valueOf converts an attribute's value. Values other than scalars and lists of strings become JSON.
func valueOf(v slog.Value) value {
	switch v.Kind() {
	case slog.KindString:
		return text(v.String())
	case slog.KindBool:
		b := v.Bool()
		return value{Bool: &b}
	case slog.KindInt64:
		i := integer(v.Int64())
		return value{Int: &i}
	case slog.KindFloat64:
		f := v.Float64()
		return value{Double: &f}
	}
	if whole, ok := v.Any().(spans.JSON); ok {
		return value{String: (*string)(&whole)}
	}
	if list, ok := v.Any().([]string); ok {
		l := &texts{Values: []value{}}
		for _, s := range list {
			l.Values = append(l.Values, text(s))
		}
		return value{Array: l}
	}
	raw, err := json.Marshal(v.Any())
	if err != nil {
		return text(err.Error())
	}
	return text(string(raw))
}

func text(s string) value {
	s = cut(s)
	return value{String: &s}
}

// cut limits the length of a text; a truncated text ends in "…".
func cut(s string) string { return bounds.Cut(strings.ToValidUTF8(s, "\uFFFD"), maxText) }

// scope names the library that created the spans.
const scope = "github.com/stonelayer/stone"

// requestJSON is request in JSON.
func requestJSON(resource attributes, all []*span) ([]byte, error) {
	type object map[string]any
	return json.Marshal(object{"resourceSpans": []object{{
		"resource": object{"attributes": resource}, "schemaUrl": spans.SchemaURL,
		"scopeSpans": []object{{"scope": object{"name": scope}, "schemaUrl": spans.SchemaURL, "spans": all}},
	}}})
}
