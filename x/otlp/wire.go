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

// Span kinds and status codes of the protocol.
const (
	internalKind = 1
	clientKind   = 3
	statusError  = 2
)

const (
	maxText   = 8 << 10 // maximum size in bytes of a text in an attribute
	maxEvents = 128     // maximum number of events in a span, as in OpenTelemetry's SDKs

	spanSize, attrSize = 256, 64 // approximate size in memory without texts, in bytes
)

// A span is a span as the protocol defines it. Its fields are set while the span is open.
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
	size int // approximate size in bytes
}

type happening struct {
	Time  integer    `json:"timeUnixNano"`
	Name  string     `json:"name"`
	Attrs attributes `json:"attributes,omitempty"`
}

// An id is an ID, which JSON represents in hexadecimal digits.
type id []byte

func (i id) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, i), nil }

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

// An integer is represented in JSON as a string, because JSON numbers lose digits. Times are in nanoseconds since 1970.
type integer int64

func (n integer) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(int64(n), 10)), nil
}

type attributes []attribute

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

// A value is the value of an attribute. Exactly one of its fields is set.
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

// set sets an attribute and replaces any earlier value.
func (a *attributes) set(key string, v value) {
	for i := range *a {
		if (*a)[i].Key == key {
			(*a)[i].Value = v
			return
		}
	}
	*a = append(*a, attribute{key, v})
}

// add adds attributes and returns their approximate size in bytes.
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

// valueOf converts the value of an attribute. Values other than scalars and lists of strings are converted to JSON.
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

// cut returns the text, truncated and with "…" at the end if it is too long.
func cut(s string) string { return bounds.Cut(strings.ToValidUTF8(s, "\uFFFD"), maxText) }

// scope is the name of the library that created the spans.
const scope = "github.com/stonelayer/stone"

// requestJSON is like request, but returns JSON.
func requestJSON(resource attributes, all []*span) ([]byte, error) {
	type object map[string]any
	return json.Marshal(object{"resourceSpans": []object{{
		"resource": object{"attributes": resource}, "schemaUrl": spans.SchemaURL,
		"scopeSpans": []object{{"scope": object{"name": scope}, "schemaUrl": spans.SchemaURL, "spans": all}},
	}}})
}
