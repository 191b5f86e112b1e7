package otlp

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
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
	End     nanoseconds `json:"endTimeUnixNano"`
	Attrs   attributes  `json:"attributes,omitempty"`
	Events  []event     `json:"events,omitempty"`
	Dropped int         `json:"droppedEventsCount,omitempty"`
	Status  *status     `json:"status,omitempty"`

	key     string  // unique among the open spans of its run
	up      *span   // the open span around it; nil for a root
	closer  string  // type of the event that ends it
	seq     int     // number among the opened spans of its run
	failure failure // the last one
	genAI   bool    // its attributes have conventional names
}

type event struct {
	Time  nanoseconds `json:"timeUnixNano"`
	Name  string      `json:"name"`
	Attrs attributes  `json:"attributes,omitempty"`
}

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

// A failure is the reason why a span failed.
type failure struct{ kind, reason string }

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
	Array  *list    `json:"arrayValue,omitempty"`
}

type list struct {
	Values []value `json:"values"`
}

// set sets the attribute; the last value counts.
func (a *attributes) set(key string, v any) {
	for i := range *a {
		if (*a)[i].Key == key {
			(*a)[i].Value = valueOf(v)
			return
		}
	}
	*a = append(*a, attribute{key, valueOf(v)})
}

// valueOf converts a value of JSON. A list of strings becomes a list, any other nested
// value its JSON.
func valueOf(v any) value {
	switch v := v.(type) {
	case string:
		v = cut(v)
		return value{String: &v}
	case bool:
		return value{Bool: &v}
	case int:
		s := strconv.Itoa(v)
		return value{Int: &s}
	case []string:
		l := &list{Values: []value{}}
		for _, s := range v {
			l.Values = append(l.Values, valueOf(s))
		}
		return value{Array: l}
	case json.Number:
		if _, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			s := string(v)
			return value{Int: &s}
		}
		if f, err := strconv.ParseFloat(string(v), 64); err == nil {
			return value{Double: &f}
		}
		return valueOf(string(v))
	}
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte(err.Error())
	}
	return valueOf(string(text))
}

// cut bounds a text; a truncated text ends in "…".
func cut(s string) string {
	if len(s) <= maxText {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "\uFFFD") + "…"
}
