// Package redact removes secrets from everything that leaves a run: records, failures,
// events, traces, errors and printed text.
//
// A [Set] knows the secrets. The set of a run is in its context: code that uses a secret adds it there, see [From]. [Mark]
// replaces a secret. It is the same for every secret, because a digest would let a weak secret be guessed.
package redact

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// MinLength is the minimum number of bytes of a secret: a shorter secret would be found in innocent text.
const MinLength = 8

// Mark replaces a secret.
const Mark = "[redacted]"

// A Set holds secrets. The zero Set, like a nil one, is empty. Its methods may be
// called by several goroutines at once.
type Set struct {
	mu     sync.Mutex
	values []string
	index  atomic.Pointer[index] // of all spellings; nil if there are none
}

// New returns the set of the values, or the error of Add.
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

// With returns a context in which s is the set of the run.
func With(ctx context.Context, s *Set) context.Context { return context.WithValue(ctx, setKey{}, s) }

// From returns the set of the run to which ctx belongs, or nil if it has none.
func From(ctx context.Context) *Set {
	s, _ := ctx.Value(setKey{}).(*Set)
	return s
}

// Add adds a secret. A value of less than MinLength bytes is an error.
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

// Empty reports whether the set has no secrets.
func (s *Set) Empty() bool { return s == nil || s.index.Load() == nil }

// Clean returns text without secrets. It finds them in plain text, in JSON, in JSON within JSON, in URLs, in hexadecimal digits
// and in base64.
func (s *Set) Clean(text string) string {
	if s.Empty() {
		return text
	}
	found, _ := s.index.Load().find(text)
	return replace(text, found)
}

// CleanCut is Clean for a text that was cut out of a longer one: it also removes a possible end of a secret at its beginning, and
// a possible beginning of a secret at its end, if they have at least MinLength bytes.
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

// Holds reports whether a text contains a secret.
func (s *Set) Holds(text string) bool {
	if s.Empty() {
		return false
	}
	found, _ := s.index.Load().find(text)
	return len(found) > 0
}

// Open returns how many bytes at the end of a text may belong to a secret whose rest follows. Callers that pass on a text in
// pieces hold these bytes back.
func (s *Set) Open(text string) int {
	if s.Empty() {
		return 0
	}
	found, open := s.index.Load().find(text)
	for _, f := range merged(found) { // do not cut a secret where another one may begin
		if f.from < open && open < f.to {
			open = f.from
		}
	}
	return len(text) - open
}

// A span is a part of a text.
type span struct{ from, to int }

// merged returns spans in their order; overlapping or touching spans become one.
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

// replace puts Mark in place of the spans.
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
