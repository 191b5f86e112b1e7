package event

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"sync"
	"unicode/utf8"
)

// A Cleaner removes secrets from text.
type Cleaner interface {
	Clean(text string) string
	// CleanCut is like Clean, but for text whose end was cut off, so that it may end with a part of a secret.
	CleanCut(text string) string
	// Open returns the number of bytes at the end of text that may be the beginning of a secret. When text is streamed, these
	// bytes are held back until more text arrives.
	Open(text string) int
}

// Clean returns a Watcher, for a single run, that removes secrets from all strings in the data of events and passes the events on
// to w. It may delay deltas and divide them differently, and it renumbers events.
func Clean(w Watcher, c Cleaner) Watcher {
	var all []Watcher
	for _, w := range flat(w) {
		all = append(all, &cleaning{Watcher: w, cleaner: c, held: map[voice]*Delta{}})
	}
	return All(all...)
}

type cleaning struct {
	Watcher
	cleaner Cleaner

	mu   sync.Mutex
	seq  uint64
	held map[voice]*Delta // for each streamed answer, the end of its text that is held back
}

// A voice is one answer that is being streamed.
type voice struct {
	path, source string
	attempt      int
}

func (c *cleaning) Watch(ctx context.Context, e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch d := e.Data.(type) {
	case Delta:
		c.delta(ctx, e, d)
		return
	case Retracted:
		d.Source = c.cleaner.Clean(d.Source)
		for v := range c.held {
			if d.Covers(e.Path, v.path, v.source, v.attempt) {
				delete(c.held, v)
			}
		}
	case RunEnded:
		clear(c.held)
	}
	e.Data = c.value(reflect.ValueOf(e.Data)).Interface().(Data)
	c.pass(ctx, e)
}

func (c *cleaning) pass(ctx context.Context, e Event) {
	c.seq++
	e.Seq, e.Request = c.seq, c.cleaner.Clean(e.Request)
	c.Watcher.Watch(ctx, e)
}

// delta passes on the part of the streamed text that cannot be the beginning of a secret.
func (c *cleaning) delta(ctx context.Context, e Event, d Delta) {
	d.Source, d.Tool = c.cleaner.Clean(d.Source), c.cleaner.Clean(d.Tool)
	v := voice{e.Path, d.Source, d.Attempt}
	held := c.held[v]
	if held != nil && (d.End || held.Kind != d.Kind || held.Index != d.Index) {
		before, rest := e, *held
		rest.Text = c.cleaner.CleanCut(rest.Text) // no more text will follow
		before.Data = rest
		c.pass(ctx, before)
		delete(c.held, v)
		held = nil
	}
	if d.End {
		e.Data = d
		c.pass(ctx, e)
		return
	}
	if held != nil {
		d.Text = held.Text + d.Text
		if held.Tool != "" {
			d.Tool = held.Tool
		}
		delete(c.held, v)
	}
	n := len(d.Text) - c.cleaner.Open(d.Text)
	for n > 0 && n < len(d.Text) && !utf8.RuneStart(d.Text[n]) {
		n--
	}
	if rest := d; n < len(d.Text) {
		if rest.Text = d.Text[n:]; n > 0 {
			rest.Tool = ""
		}
		c.held[v] = &rest
	}
	if n > 0 || d.Text == "" {
		d.Text = c.cleaner.Clean(d.Text[:n])
		e.Data = d
		c.pass(ctx, e)
	}
}

// value returns a copy of v with secrets removed from all strings.
func (c *cleaning) value(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		out := reflect.New(v.Type()).Elem()
		out.SetString(c.cleaner.Clean(v.String()))
		return out
	case reflect.Struct:
		if a, ok := v.Interface().(slog.Attr); ok {
			return reflect.ValueOf(c.attr(a))
		}
		out := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			out.Field(i).Set(c.value(v.Field(i)))
		}
		return out
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(c.value(v.Elem()))
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(c.value(v.Index(i)))
		}
		return out
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		return reflect.ValueOf(c.json(v.Interface()))
	}
	return v // a number or a boolean
}

func (c *cleaning) attr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(c.cleaner.Clean(v.String()))
	case slog.KindGroup:
		group := make([]slog.Attr, 0, len(v.Group()))
		for _, a := range v.Group() {
			group = append(group, c.attr(a))
		}
		a.Value = slog.GroupValue(group...)
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			a.Value = slog.StringValue(c.cleaner.Clean(err.Error()))
		} else {
			a.Value = slog.AnyValue(c.json(v.Any()))
		}
	}
	return a
}

// json returns the JSON of a value with secrets removed from all strings.
func (c *cleaning) json(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	var tree any
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		err = dec.Decode(&tree)
	}
	if err == nil {
		raw, err = json.Marshal(c.tree(tree))
	}
	if err != nil { // a value that cannot be encoded is replaced by the name of its type
		raw, _ = json.Marshal(c.cleaner.Clean("not shown: " + err.Error()))
	}
	return raw
}

func (c *cleaning) tree(v any) any {
	switch v := v.(type) {
	case string:
		return c.cleaner.Clean(v)
	case json.Number:
		if clean := c.cleaner.Clean(v.String()); clean != v.String() {
			return clean
		}
	case []any:
		for i := range v {
			v[i] = c.tree(v[i])
		}
	case map[string]any:
		for k, below := range v {
			if clean := c.cleaner.Clean(k); clean != k {
				delete(v, k)
				k = clean
			}
			v[k] = c.tree(below)
		}
	}
	return v
}
