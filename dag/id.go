package dag

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/stonelayer/stone/internal/canon"
)

// An ID identifies a node. It is the SHA-256 hash of the RFC 8785 canonical JSON of
//
//	{"content":…,"parents":[ids in their order],"type":…}
//
// in which integers keep all their digits. Its text form is 64 lower-case
// hexadecimal digits.
type ID [sha256.Size]byte

// String returns the id as 64 lower-case hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText returns the id as 64 lower-case hexadecimal digits.
func (id ID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// UnmarshalText decodes an id in the form that MarshalText returns.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, ok := parseID(text)
	if !ok {
		return wrongID(string(text))
	}
	*id = parsed
	return nil
}

// ParseID returns the id whose String is s. It returns an error for any other text, including upper-case digits.
func ParseID(s string) (ID, error) {
	id, ok := parseID([]byte(s))
	if !ok {
		return ID{}, wrongID(s)
	}
	return id, nil
}

func parseID(text []byte) (id ID, ok bool) {
	if len(text) != hex.EncodedLen(len(id)) || bytes.ContainsAny(text, "ABCDEF") {
		return ID{}, false
	}
	if _, err := hex.Decode(id[:], text); err != nil {
		return ID{}, false
	}
	return id, true
}

func wrongID(s string) error {
	return fmt.Errorf("node id %.80q: want %d lower-case hexadecimal digits", s, hex.EncodedLen(sha256.Size))
}

// An envelope is a buffer for the bytes that are hashed into an id. The content comes first, so that an encoder can write it in
// place.
type envelope struct{ buf []byte }

var envelopes = sync.Pool{New: func() any { return &envelope{buf: make([]byte, 0, 1024)} }}

// maxPooled is the maximum size in bytes of a buffer kept for reuse.
const maxPooled = 1 << 20

const contentStart = len(`{"content":`)

func openEnvelope() *envelope {
	e := envelopes.Get().(*envelope)
	e.buf = append(e.buf[:0], `{"content":`...)
	return e
}

// seal adds parents and type after the content and returns the id and a copy of the
// content.
func (e *envelope) seal(parents []*Node, typ *desc) (ID, string) {
	content := string(e.buf[contentStart:])
	return e.sum(parents, typ.quoted), content
}

// sum returns the id of the node whose envelope is in the buffer.
func (e *envelope) sum(parents []*Node, quoted []byte) ID {
	buf := append(e.buf, `,"parents":[`...)
	for i, p := range parents {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(buf, '"')
		buf = p.id.appendHex(buf)
		buf = append(buf, '"')
	}
	buf = append(buf, `],"type":`...)
	buf = append(buf, quoted...)
	buf = append(buf, '}')
	e.buf = buf
	return sha256.Sum256(buf)
}

func (e *envelope) close() {
	if cap(e.buf) <= maxPooled {
		envelopes.Put(e)
	}
}

// hexPairs holds the two hexadecimal digits of every byte.
var hexPairs = func() (pairs [256][2]byte) {
	const digits = "0123456789abcdef"
	for i := range pairs {
		pairs[i] = [2]byte{digits[i>>4], digits[i&15]}
	}
	return pairs
}()

// appendHex is like hex.AppendEncode at less than half the cost, which matters because every id hashes the ids of its parents.
func (id *ID) appendHex(b []byte) []byte {
	var out [2 * sha256.Size]byte
	for i, c := range id {
		*(*[2]byte)(out[2*i:]) = hexPairs[c]
	}
	return append(b, out[:]...)
}

// quote returns s as a canonical JSON string.
func quote(s string) ([]byte, error) {
	b, err := canon.Append(nil, s)
	if err != nil {
		return nil, fmt.Errorf("type name %q: want valid UTF-8", s)
	}
	return b, nil
}
