// Package redact removes secrets from everything that leaves a run: records, failures,
// events, traces, errors and printed text.
//
// A [Set] contains the secrets. Each run has a set in its context, and code that uses a secret adds it there (see [From]). Secrets
// are replaced with [Mark]. It is the same for every secret, because a weak secret could be guessed from its digest.
package redact

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// MinLength is the minimum length of a secret in bytes. A shorter secret would also be found in harmless text.
const MinLength = 8

// Mark is the text that replaces a secret.
const Mark = "[redacted]"

// A Set is a set of secrets. A zero Set and a nil *Set are empty. A Set is safe for concurrent use.
type Set struct {
	mu     sync.Mutex
	values []string
	index  atomic.Pointer[index] // index of all spellings; nil if there are none
}

// New returns a set that contains the values. It returns an error if Add would.
func New(values ...string) (*Set, error) {
	s := new(Set)
	for _, v := range values {
		if err := s.Add(v); err != nil {
			return nil, err
		}
	}
	return s, nil
}

type setKey struct{}

// With returns a context for a run whose set of secrets is s.
func With(ctx context.Context, s *Set) context.Context { return context.WithValue(ctx, setKey{}, s) }

// From returns the set of the run to which ctx belongs, or nil if it has none.
func From(ctx context.Context) *Set {
	s, _ := ctx.Value(setKey{}).(*Set)
	return s
}

// Add adds a secret. It returns an error if the value is shorter than MinLength bytes.
func (s *Set) Add(value string) error {
	if len(value) < MinLength {
		return fmt.Errorf("a secret has %d bytes: want at least %d, a shorter one would be found in innocent text", len(value), MinLength)
	}
	s.add(value)
	return nil
}

func (s *Set) add(values ...string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	for _, v := range values {
		if len(v) < MinLength || slices.Contains(s.values, v) || strings.Contains(Mark, v) {
			continue
		}
		s.values, changed = append(s.values, v), true
	}
	if changed {
		s.index.Store(newIndex(s.values))
	}
}

// Empty reports whether the set contains no secrets.
func (s *Set) Empty() bool { return s == nil || s.index.Load() == nil }

// Clean returns text with all secrets replaced by Mark. It finds secrets in plain text, in JSON, in JSON within JSON, in URLs, in
// hexadecimal digits and in base64.
func (s *Set) Clean(text string) string {
	if s.Empty() {
		return text
	}
	found, _ := s.index.Load().find(text)
	return replace(text, found)
}

// CleanCut is like Clean, for text that was cut out of a longer text. It also replaces a possible end of a secret at the
// beginning of the text, and a possible beginning of a secret at the end of the text, if these are at least MinLength bytes long.
func (s *Set) CleanCut(text string) string {
	if s.Empty() {
		return text
	}
	x := s.index.Load()
	found, open := x.find(text)
	if len(text)-open >= MinLength {
		found = append(found, span{open, len(text)})
	}
	if n := x.tail(text); n > 0 {
		found = append(found, span{0, n})
	}
	return replace(text, found)
}

// Holds reports whether text contains a secret.
func (s *Set) Holds(text string) bool {
	if s.Empty() {
		return false
	}
	found, _ := s.index.Load().find(text)
	return len(found) > 0
}

// Open returns the number of bytes at the end of text that may be the beginning of a secret. Callers that pass text on in pieces
// must hold these bytes back.
func (s *Set) Open(text string) int {
	if s.Empty() {
		return 0
	}
	found, open := s.index.Load().find(text)
	for _, f := range merged(found) { // do not split a secret in which another one may begin
		if f.from < open && open < f.to {
			open = f.from
		}
	}
	return len(text) - open
}

// A span is a part of a text.
type span struct{ from, to int }

// merged sorts spans, and merges spans that overlap or touch.
func merged(all []span) (out []span) {
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	for _, s := range all {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// replace replaces the spans in a text with Mark.
func replace(text string, found []span) string {
	if len(found) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, f := range merged(found) {
		b.WriteString(text[at:f.from])
		b.WriteString(Mark)
		at = f.to
	}
	b.WriteString(text[at:])
	return b.String()
}
