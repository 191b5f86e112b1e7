package wire

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// halves joins characters whose two halves arrive in two events. A server that cuts its text by UTF-16 units ends one piece with
// the first half and begins the next piece with the second half.
type halves struct{ first []byte }

var (
	escape     = []byte(`\u`)
	firstHalf  = regexp.MustCompile(`^\\u[dD][89abAB][0-9a-fA-F]{2}$`)
	secondHalf = regexp.MustCompile(`"\\u[dD][c-fC-F][0-9a-fA-F]{2}`)
)

const halfSize = 6 // length of an escape such as \ud83d

// join returns the event with the first half from an earlier event added, and without a first half at the end of a text.
func (h *halves) join(data []byte) []byte {
	if !bytes.Contains(data, escape) {
		return data
	}
	if h.first != nil {
		if at := secondHalf.FindIndex(data); at != nil {
			data = slices.Concat(data[:at[0]+1], h.first, data[at[0]+1:])
			h.first = nil
		}
	}
	for from := 0; ; {
		at := bytes.Index(data[from:], escape)
		if at < 0 {
			return data
		}
		at += from
		end := at + halfSize
		if from = at + len(escape); end >= len(data) || data[end] != '"' || !firstHalf.Match(data[at:end]) || escaped(data, at) {
			continue
		}
		h.first = bytes.Clone(data[at:end])
		return slices.Concat(data[:at], data[end:])
	}
}

// escaped reports whether the backslash at the given index is itself escaped.
func escaped(data []byte, at int) bool {
	n := 0
	for at > n && data[at-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// MadeIDs generates the tool call IDs of an answer whose server does not provide any. No two answers have the same ID.
type MadeIDs struct {
	prefix string
	n      int
}

// Next returns a new ID.
func (m *MadeIDs) Next() string {
	if m.prefix == "" {
		m.prefix = strings.ToLower(rand.Text()[:10])
	}
	m.n++
	return fmt.Sprintf("call_%s_%d", m.prefix, m.n)
}
