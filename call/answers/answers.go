package answers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// A Path is the path of a value in a row: the name of a column, followed by the names of nested fields if the value is inside the
// column.
type Path []string

// A Key selects the row that answers a request: each named field of the input must equal the value at the field's path in the
// row. Strings are compared without surrounding white space.
type Key map[string]Path

// Config describes a file of recorded answers and the columns to use. Only File is required.
type Config struct {
	File string
	// Model selects the rows whose "model" column has this value; "" selects all.
	Model string
	// Key selects the row that answers a request. Nil means {"id": {"id"}}.
	Key Key
	// Text, Usage and Latency are the paths of the answer, its token counts and its duration in milliseconds; nil means {"text"},
	// {"usage"} and {"latency"}. A row without a text is skipped. A usage contains input_tokens and output_tokens, or
	// prompt_tokens and completion_tokens.
	Text, Usage, Latency Path
	// Schema returns the schema with the given name; see model.Config.
	Schema func(name string) (*schema.Schema, bool)
}

// Check returns an error if the configuration is invalid or the file cannot be read.
func (c Config) Check() error {
	if c.File == "" {
		return errors.New("answers: no File: name a file of JSON Lines")
	}
	for name, path := range c.Key {
		if name == "" || len(path) == 0 {
			return fmt.Errorf("answers: the key %q has no path: name a column", name)
		}
	}
	_, err := digest(c.File)
	return err
}

// Verify reads the whole file. It returns an error if a row is invalid or if the file contains no answers.
func (c Config) Verify() error {
	if err := c.Check(); err != nil {
		return err
	}
	_, err := c.read()
	return err
}

// New returns a capability of kind answers that replies from the file c.File. Its id defaults to c.Model or, if that is empty, to
// "answers". The file is read on the first request.
func New(m call.Metadata, c Config) call.Capability {
	m.ID, m.Kind = cmp.Or(m.ID, c.Model, "answers"), cmp.Or(m.Kind, "answers")
	if m.Version == "" {
		m.Version, _ = digest(c.File) // Check and the first request report the error
	}
	b := &book{Config: c, rows: sync.OnceValues(c.read)}
	as := model.New(m, model.Config{Model: said{m.ID}, Schema: c.Schema})
	invoke := as.Invoke
	as.Invoke = func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		a, err := b.find(req.Input)
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(a.text) == "" {
			return nil, &call.Error{Type: reasons.FormatDrift, Message: fmt.Sprintf("the answer in line %d of %s is empty", a.line, c.File)}
		}
		reply, err := invoke(context.WithValue(ctx, answerKey{}, a), req)
		if reply != nil {
			reply.Usage.LatencyMS = a.latency
		}
		return reply, err
	}
	return as
}

// key returns c.Key, or the default if c.Key is nil.
func (c Config) key() Key {
	if c.Key == nil {
		return Key{"id": {"id"}}
	}
	return c.Key
}

// A book holds the answers in a file, by key.
type book struct {
	Config
	rows func() (map[string]answer, error) // the answers by key
}

// An answer is the content of one row.
type answer struct {
	text    string
	usage   llm.Usage
	latency int64 // in milliseconds
	line    int
}

// find returns the recorded answer to an input, or an error if there is none.
func (b *book) find(input call.JSON) (answer, error) {
	rows, err := b.rows()
	if err != nil {
		return answer{}, &call.Error{Type: reasons.NotRecorded, Message: err.Error(), Cause: err}
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil {
		return answer{}, &call.Error{Type: reasons.InputInvalid, Where: "input", Message: "the input is not an object: its fields select the answer in " + b.File}
	}
	key := map[string]json.RawMessage{}
	for name := range b.key() {
		value, ok := fields[name]
		if !ok {
			return answer{}, &call.Error{Type: reasons.InputInvalid, Where: "input",
				Message: fmt.Sprintf("the input has no field %q, which selects the answer in %s: add it, or change the key of the capability", name, b.File)}
		}
		key[name] = value
	}
	asked, err := keyOf(key)
	if err != nil {
		return answer{}, &call.Error{Type: reasons.InputInvalid, Where: "input", Message: err.Error(), Cause: err}
	}
	if a, ok := rows[asked]; ok {
		return a, nil
	}
	message := fmt.Sprintf("%s has no answer to %s", b.File, text.Cut(asked, mostShown))
	if near, differs := suggest.Nearest(asked, maps.Keys(rows)); near != "" {
		message += fmt.Sprintf("; the nearest one, in line %d, differs %s", rows[near].line, differs)
	}
	return answer{}, &call.Error{Type: reasons.NotRecorded, Message: message}
}

// mostShown is the maximum length of a key's text in an error.
const mostShown = 120

// keyOf returns the values of a key as canonical JSON, with white space around strings removed.
func keyOf(values map[string]json.RawMessage) (string, error) {
	key := map[string]any{}
	for name, value := range values {
		key[name] = value
		if s, ok := stringOf(value); ok {
			key[name] = strings.TrimSpace(s)
		}
	}
	data, err := canon.Append(nil, key)
	return string(data), err
}

// stringOf returns the value of a JSON string. For any other JSON value, it returns false.
func stringOf(value json.RawMessage) (s string, ok bool) {
	return s, bytes.HasPrefix(value, []byte{'"'}) && json.Unmarshal(value, &s) == nil
}

// said is a model that returns the answer found in its context.
type said struct{ name string }

type answerKey struct{}

// Info implements llm.Informer.
func (s said) Info() llm.Info { return llm.Info{Provider: "answers", Model: s.name, Mode: llm.Replay} }

// Stream implements llm.Model.
func (s said) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		a, _ := ctx.Value(answerKey{}).(answer)
		reply := &llm.Reply{Text: a.text, Usage: a.usage, Model: s.name}
		for _, d := range slices.Concat([]llm.Delta{{Kind: llm.Start, Reply: &llm.Reply{}}}, reply.Deltas()) {
			if !yield(d, nil) {
				return
			}
		}
		yield(llm.Delta{Kind: llm.Done, Reply: reply}, nil)
	}
}
