package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/jsonv2"
)

// Line returns the event as one line of a trace file: a JSON object, without the newline. Contents, such as prompts, answers and
// tool results, are included only if contents is true.
//
// Times are in milliseconds since 1970 and durations in milliseconds, both with up to six decimals. A value that JSON cannot
// express, such as a channel, is replaced by the text of the error.
func (e Event) Line(contents bool) []byte {
	b := append(make([]byte, 0, 512), `{"event":`...)
	b = appendString(b, e.Type())
	if _, ok := e.Data.(Custom); ok {
		b = append(b, `,"custom":true`...)
	}
	b = appendString(append(b, `,"level":`...), strings.ToLower(e.Level().String()))
	if e.Seq > 0 {
		b = strconv.AppendUint(append(b, `,"seq":`...), e.Seq, 10)
	}
	if !e.Time.IsZero() {
		b = appendMillis(append(b, `,"timestamp":`...), e.Time.UnixNano())
	}
	for _, s := range [...]struct{ key, text string }{
		{`,"trace-id":`, e.Run}, {`,"request-id":`, e.Request}, {`,"span-id":`, e.Span},
		{`,"parent-span-id":`, e.Parent}, {`,"ashlar-name":`, e.Name}, {`,"path":`, e.Path},
	} {
		if s.text != "" {
			b = appendString(append(b, s.key...), s.text)
		}
	}
	return append(e.appendData(append(b, `,"data":`...), contents), '}')
}

// MarshalJSON returns [Event.Line] with contents.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Data == nil {
		return nil, errors.New("an event without data has no JSON")
	}
	return e.Line(true), nil
}

func (e Event) appendData(b []byte, contents bool) []byte {
	if c, ok := e.Data.(Custom); ok {
		return appendGroup(b, c.Attrs)
	}
	b = append(b, '{')
	data := reflect.ValueOf(e.Data)
	for _, f := range fieldsOf(data.Type()) {
		if f.content && !contents {
			continue
		}
		if v, ok := f.of(data); ok {
			b = appendValue(appendKey(b, f.name), v)
		}
	}
	return append(b, '}')
}

// appendKey appends a member's name and a colon, preceded by a comma if needed.
func appendKey(b []byte, key string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(appendString(b, key), ':')
}

// appendGroup appends attributes as an object, following the rules of slog.
func appendGroup(b []byte, attrs []slog.Attr) []byte {
	return append(appendMembers(append(b, '{'), attrs), '}')
}

func appendMembers(b []byte, attrs []slog.Attr) []byte {
	for _, a := range attrs {
		v := a.Value.Resolve()
		switch {
		case a.Equal(slog.Attr{}):
		case v.Kind() != slog.KindGroup:
			b = appendValue(appendKey(b, a.Key), v.Any())
		case a.Key == "":
			b = appendMembers(b, v.Group())
		case len(v.Group()) > 0:
			b = appendGroup(appendKey(b, a.Key), v.Group())
		}
	}
	return b
}

// appendString appends s as a JSON string with invalid UTF-8 replaced. It ignores the error for invalid UTF-8.
func appendString(b []byte, s string) []byte {
	b, _ = jsonv2.AppendQuote(b, s)
	return b
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendString(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case time.Duration:
		return appendMillis(b, int64(v))
	case error:
		return appendString(b, v.Error())
	case []byte:
		return appendRaw(b, v)
	case json.RawMessage:
		return appendRaw(b, v)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return appendString(b, "not shown: "+err.Error())
	}
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte{'\n'})...)
}

// appendRaw appends JSON on one line, and anything else as a string.
func appendRaw(b, raw []byte) []byte {
	text := bytes.NewBuffer(b)
	if json.Compact(text, raw) != nil {
		return appendString(b, string(raw))
	}
	return text.Bytes()
}

const perMilli = int64(time.Millisecond)

func appendMillis(b []byte, ns int64) []byte {
	if ns < 0 && ns > -perMilli {
		b = append(b, '-') // the whole part is 0
	}
	b = strconv.AppendInt(b, ns/perMilli, 10)
	rest := ns % perMilli
	if rest == 0 {
		return b
	}
	return append(append(b, '.'), strings.TrimRight(strconv.FormatInt(max(rest, -rest)+perMilli, 10)[1:], "0")...)
}

// millis converts a number of milliseconds to nanoseconds.
func millis(text string) (int64, error) {
	whole, decimals, _ := strings.Cut(text, ".")
	ms, err := strconv.ParseInt(whole, 10, 64)
	ns, err2 := strconv.ParseInt((decimals + "000000")[:6], 10, 64)
	if err != nil || err2 != nil { // a form such as 1e3, which is rare
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f > -maxMillis && f < maxMillis) {
			return 0, fmt.Errorf("%.40s: want a number of milliseconds", text)
		}
		return int64(f * float64(perMilli)), nil
	}
	if ms < -maxMillis || ms > maxMillis {
		return 0, fmt.Errorf("%s: want at most %d milliseconds", text, int64(maxMillis))
	}
	if whole[0] == '-' {
		ns = -ns
	}
	return ms*perMilli + ns, nil
}

// maxMillis is the largest whole number of milliseconds whose nanoseconds fit into int64.
const maxMillis = 1<<63/1_000_000 - 1
