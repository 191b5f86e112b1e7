package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/stonelayer/stone/internal/jsonv2"
)

// types maps the names of event types to Go types. It does not contain Custom.
var types = map[string]reflect.Type{}

func init() {
	for _, d := range []Data{
		RunStarted{}, RunEnded{}, StepStarted{}, StepDone{}, StepReplayed{}, StepFailed{}, AttemptFailed{},
		LaneStarted{}, LaneEnded{}, QuestionAsked{}, QuestionAnswered{}, AgentStarted{}, AgentEnded{},
		ModelRequest{}, ModelResponse{}, ModelRestarted{}, Progress{}, MiddlewareRan{},
		ToolStarted{}, ToolDone{}, ToolPanicked{}, CallAttempt{}, CallVerdict{}, PlanChecked{},
		Delta{}, Retracted{}, Notice{},
	} {
		types[Event{Data: d}.Type()] = reflect.TypeOf(d)
	}
}

// UnmarshalJSON decodes an event in the form that MarshalJSON and [Event.Line] return. A value whose type is any, or a list or an
// object among the attributes of a Custom event, becomes a [json.RawMessage]. Unknown members are ignored.
func (e *Event) UnmarshalJSON(text []byte) error {
	var l struct {
		Event     string       `json:"event"`
		Custom    bool         `json:"custom"`
		Level     string       `json:"level"`
		Seq       uint64       `json:"seq"`
		Timestamp jsonv2.Value `json:"timestamp"`
		Run       string       `json:"trace-id"`
		Request   string       `json:"request-id"`
		Span      string       `json:"span-id"`
		Parent    string       `json:"parent-span-id"`
		Name      string       `json:"ashlar-name"`
		Path      string       `json:"path"`
		Data      jsonv2.Value `json:"data"`
	}
	if err := jsonv2.UnmarshalLenient(text, &l); err != nil {
		return errors.New(jsonv2.Reason(err))
	}
	read := Event{Run: l.Run, Request: l.Request, Seq: l.Seq, Span: l.Span, Parent: l.Parent, Name: l.Name, Path: l.Path}
	if l.Timestamp != nil {
		ns, err := millis(string(l.Timestamp))
		if err != nil {
			return fmt.Errorf("timestamp %w", err)
		}
		read.Time = time.Unix(0, ns)
	}
	var err error
	switch typ := types[l.Event]; {
	case l.Custom:
		read.Data, err = custom(l.Event, l.Level, l.Data)
	case typ != nil:
		read.Data, err = decode(typ, l.Data)
	case l.Event == "":
		err = errors.New(`no event: want an object that begins with "event", as run --trace writes it`)
	default:
		err = fmt.Errorf("unknown event %q: the file is of another version of Stone", l.Event)
	}
	if err == nil {
		*e = read
	}
	return err
}

// decode returns the value of the given type that a JSON object describes.
func decode(typ reflect.Type, text jsonv2.Value) (Data, error) {
	data := reflect.New(typ).Elem()
	var members map[string]jsonv2.Value
	if text != nil {
		if err := jsonv2.UnmarshalLenient(text, &members); err != nil {
			return nil, fmt.Errorf("data: %s", jsonv2.Reason(err))
		}
	}
	for _, f := range fieldsOf(typ) {
		raw, ok := members[f.name]
		if !ok || string(raw) == "null" {
			continue
		}
		if err := f.set(data, raw); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return data.Interface().(Data), nil
}

// set decodes a value and stores it in the field.
func (f field) set(data reflect.Value, raw jsonv2.Value) error {
	v := data
	for _, i := range f.path {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	switch to := v.Addr().Interface().(type) {
	case *time.Duration:
		ns, err := millis(string(raw))
		*to = time.Duration(ns)
		return err
	case *any:
		*to = json.RawMessage(raw)
	default:
		if err := jsonv2.UnmarshalLenient(raw, to); err != nil {
			return fmt.Errorf("%.40s: %s", raw, jsonv2.Reason(err))
		}
	}
	return nil
}

// custom decodes the data of a Custom event.
func custom(name, level string, text []byte) (Data, error) {
	c := Custom{Name: name}
	err := c.At.UnmarshalText([]byte(level))
	if err != nil {
		return nil, fmt.Errorf(`level %q: want one such as "info" or "error+4"`, level)
	}
	if c.Attrs, err = members(text); err != nil {
		return nil, fmt.Errorf("data: %s", jsonv2.Reason(err))
	}
	return c, nil
}

// members returns the members of a JSON object as attributes.
func members(text []byte) (attrs []slog.Attr, err error) {
	in := jsonv2.NewDecoder(bytes.NewReader(text), jsonv2.AllowDuplicateNames(true))
	if in.PeekKind() != '{' {
		return nil, errors.New("want an object")
	}
	_, err = in.ReadToken()
	for err == nil && in.PeekKind() != '}' {
		key, wrong := in.ReadToken()
		if wrong != nil {
			return nil, wrong
		}
		name := key.String() // the token is valid until the next read
		var raw jsonv2.Value
		if raw, err = in.ReadValue(); err == nil {
			attrs = append(attrs, slog.Attr{Key: name, Value: valueOf(raw)})
		}
	}
	return attrs, err
}

// valueOf returns the value of an attribute: a string, a boolean, a whole number if it fits, another
// number, or else its JSON.
func valueOf(raw jsonv2.Value) slog.Value {
	var v any
	var n int64
	switch raw.Kind() {
	case '0':
		if jsonv2.UnmarshalLenient(raw, &n) == nil {
			return slog.Int64Value(n)
		}
		fallthrough
	case '"', 't', 'f':
		if jsonv2.UnmarshalLenient(raw, &v) == nil {
			return slog.AnyValue(v)
		}
	}
	return slog.AnyValue(json.RawMessage(bytes.Clone(raw)))
}
