package otlp

import (
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/internal/bounds"
)

// Kinds of spans and codes of states in the protocol.
const (
	internalKind = 1
	clientKind   = 3
	statusError  = 2
)

const (
	maxText   = 8 << 10 // bytes of a text in an attribute
	maxEvents = 128     // of a span; the SDKs of OpenTelemetry have the same bound
)

// A span is a span of the protocol, filled while it is open.
type span struct {
	TraceID string      `json:"traceId"`
	SpanID  string      `json:"spanId"`
	Parent  string      `json:"parentSpanId,omitempty"`
	Name    string      `json:"name"`
	Kind    int         `json:"kind"`
	Start   nanoseconds `json:"startTimeUnixNano"`
	Ended   nanoseconds `json:"endTimeUnixNano"`
	Attrs   attributes  `json:"attributes,omitempty"`
	Events  []happening `json:"events,omitempty"`
	Dropped int         `json:"droppedEventsCount,omitempty"`
	Status  *status     `json:"status,omitempty"`

	emit func(*span)
}

type happening struct {
	Time  nanoseconds `json:"timeUnixNano"`
	Name  string      `json:"name"`
	Attrs attributes  `json:"attributes,omitempty"`
}

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

// nanoseconds since 1970; the protocol writes them as a string.
type nanoseconds int64

func (n nanoseconds) MarshalJSON() ([]byte, error) {
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
	Int    *string  `json:"intValue,omitempty"` // a string, since numbers in JSON lose digits
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

func (a *attributes) add(attrs []slog.Attr) {
	for _, attr := range attrs {
		a.set(attr.Key, valueOf(attr.Value))
	}
}

// valueOf converts the value of an attribute. What is no scalar and no list of strings becomes its
// JSON.
func valueOf(v slog.Value) value {
	switch v.Kind() {
	case slog.KindString:
		return text(v.String())
	case slog.KindBool:
		b := v.Bool()
		return value{Bool: &b}
	case slog.KindInt64:
		s := v.String()
		return value{Int: &s}
	case slog.KindFloat64:
		f := v.Float64()
		return value{Double: &f}
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

// cut bounds a text; a truncated text ends in "…".
func cut(s string) string { return bounds.Cut(strings.ToValidUTF8(s, "\uFFFD"), maxText) }
