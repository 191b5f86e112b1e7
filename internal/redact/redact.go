// Package redact takes secrets out of what leaves a run: records, failures and
// events (see event.Clean). A [Set] knows the secrets and finds each of them as it is, in JSON,
// in URLs and in base64. In their place stands "sha256:" and 8 hexadecimal digits.
package redact

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/stonelayer/stone/internal/canon"
)

// MinLength is how many bytes a secret has at least: a shorter one would be found
// in innocent text.
const MinLength = 8

// A Set holds secrets. The zero Set, like a nil one, is empty. Its methods may be
// called by several goroutines at once.
type Set struct {
	mu    sync.RWMutex
	pairs []pair // the longest first
	out   *strings.Replacer
}

// pair is one spelling of a secret, and what stands in its place.
type pair struct{ text, digest string }

// New returns the set of the values.
func New(values ...string) (*Set, error) {
	s := new(Set)
	for _, v := range values {
		if err := s.Add(v); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Add adds a secret. A value of less than MinLength bytes is an error.
func (s *Set) Add(value string) error {
	if len(value) < MinLength {
		return fmt.Errorf("a secret has %d bytes: want at least %d, a shorter one would be found in innocent text", len(value), MinLength)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.pairs, func(p pair) bool { return p.text == value }) {
		return nil
	}
	texts, err := spellings(value)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(value))
	digest := fmt.Sprintf("sha256:%x", sum[:4])
	for _, text := range texts {
		s.pairs = append(s.pairs, pair{text, digest})
	}
	slices.SortStableFunc(s.pairs, func(a, b pair) int { return len(b.text) - len(a.text) })
	var replace []string
	for _, p := range s.pairs {
		replace = append(replace, p.text, p.digest)
	}
	s.out = strings.NewReplacer(replace...)
	return nil
}

// Clean returns text without secrets.
func (s *Set) Clean(text string) string {
	if s == nil {
		return text
	}
	s.mu.RLock()
	out := s.out
	s.mu.RUnlock()
	if out == nil {
		return text
	}
	return out.Replace(text)
}

// Longest returns how many bytes the longest text has that Clean looks for: so much
// of a streamed text must be held back, or a secret passes in two pieces.
func (s *Set) Longest() int {
	if s == nil {
		return 0
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.pairs) == 0 {
		return 0
	}
	return len(s.pairs[0].text)
}

// Holds reports whether a text holds a secret.
func (s *Set) Holds(text string) bool { return s.Clean(text) != text }

// spellings returns the forms of a value that are looked for: as it is, in JSON and
// in JSON within JSON by encoders that escape what HTML minds and by those that do
// not, in a path and in a query of a URL, and in base64.
func spellings(value string) ([]string, error) {
	texts := []string{value}
	add := func(text string) {
		if len(text) >= MinLength && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	for from := 0; from < len(texts) && len(texts) < 7; from++ {
		plain, err := canon.Append(nil, texts[from])
		if err != nil {
			return nil, fmt.Errorf("a secret cannot be written as JSON: %w", err)
		}
		escaped, err := json.Marshal(texts[from])
		if err != nil {
			return nil, fmt.Errorf("a secret cannot be written as JSON: %w", err)
		}
		add(string(plain[1 : len(plain)-1]))
		add(string(escaped[1 : len(escaped)-1]))
	}
	add(url.QueryEscape(value))
	add(url.PathEscape(value))
	add(strings.ReplaceAll(url.QueryEscape(value), "+", "%20"))
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for offset := range 3 {
			add(within64(encoding, value, offset))
		}
	}
	return texts, nil
}

// within64 returns the base64 of a value as it stands in that of a longer text in
// which the value follows so many bytes, modulo 3: without the digits that hold
// bits of its neighbours too.
func within64(encoding *base64.Encoding, value string, offset int) string {
	digits := encoding.EncodeToString([]byte(strings.Repeat("\x00", offset) + value))
	first := (offset*8 + 5) / 6
	last := (offset + len(value)) * 8 / 6
	return digits[first:last]
}
