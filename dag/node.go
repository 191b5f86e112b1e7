package dag

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/terms"
)

// A Node is a vertex of a DAG. It has a type, a content and parents, and is immutable. The methods of a nil Node return zero
// values.
type Node struct {
	id      ID
	typ     string
	content string // canonical JSON
	parents []*Node
	value   any      // a *T if T is a flat type, so that the content need not be decoded
	self    [1]*Node // the parents of a node that follows only this one
	at      int64    // Unix time in nanoseconds, or noTime
	meta    map[string]string

	// spare is the log entry that the first append of this node uses.
	spare atomic.Pointer[entry]

	// near is the index that Nearest uses for this node and its line. It is built on first use; see index.go.
	near atomic.Pointer[trie[*Node]]
}

// A Spec describes a node to be made by NewNode, without a Go type for its content, for example a node read from a file.
type Spec struct {
	Type    string            // not empty, valid UTF-8
	Content any               // the content, encoded with encoding/json; a json.RawMessage is used as is
	Parents []*Node           // the parents in order; none may be nil
	Meta    map[string]string // not part of the id; copied; valid UTF-8
	Time    time.Time         // not part of the id; zero if unknown; a year before 1678 or after 2261 counts as zero
}

// NewNode returns a new node with the type, content and parents in s. The content is stored as canonical JSON. If JSON cannot
// represent the content without loss, the error names the field.
func NewNode(s Spec) (*Node, error) {
	t, err := describe(s.Type)
	if err != nil {
		return nil, err
	}
	if i := slices.Index(s.Parents, nil); i >= 0 {
		return nil, fmt.Errorf("parent %d of a %q node is nil: want a node", i, s.Type)
	}
	for k, v := range s.Meta {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return nil, fmt.Errorf("meta %q of a %q node is not valid UTF-8", k, s.Type)
		}
	}
	e := openEnvelope()
	defer e.close()
	if raw, ok := s.Content.(json.RawMessage); ok {
		e.buf, err = canon.AppendJSON(e.buf, raw)
	} else {
		e.buf, err = canon.Append(e.buf, s.Content)
	}
	if err != nil {
		return nil, fmt.Errorf("content of a %q node: %w", s.Type, err)
	}
	n := &Node{typ: t.name, parents: slices.Clone(s.Parents), at: nanos(s.Time), meta: maps.Clone(s.Meta)}
	n.self[0] = n
	n.id, n.content = e.seal(s.Parents, t)
	return n, nil
}

const (
	noTime     = math.MinInt64
	maxSeconds = math.MaxInt64 / int64(time.Second)
)

func nanos(t time.Time) int64 {
	if s := t.Unix(); s <= -maxSeconds || s >= maxSeconds {
		return noTime
	}
	return t.UnixNano()
}

// ID returns the node's id.
func (n *Node) ID() ID {
	if n == nil {
		return ID{}
	}
	return n.id
}

// Type returns the name of the node's type.
func (n *Node) Type() string {
	if n == nil {
		return ""
	}
	return n.typ
}

// Parents returns a copy of the list of parents, in order. It is not limited by a [View].
func (n *Node) Parents() []*Node {
	if n == nil {
		return nil
	}
	return slices.Clone(n.parents)
}

// Parent returns the first parent, or nil if n has no parents.
func (n *Node) Parent() *Node {
	if n == nil || len(n.parents) == 0 {
		return nil
	}
	return n.parents[0]
}

// Content returns a copy of the content, which is canonical JSON.
func (n *Node) Content() json.RawMessage {
	if n == nil {
		return nil
	}
	return json.RawMessage(n.content)
}

// JSON returns the content without copying it.
func (n *Node) JSON() string {
	if n == nil {
		return ""
	}
	return n.content
}

// Own returns the content without the fields, such as the conversation of an agent, that the meta lists under "beside", separated
// by commas. Comparisons between runs, and displays for people, use the result.
func (n *Node) Own() string {
	if n == nil {
		return ""
	}
	return OwnContent(n.content, n.meta)
}

// OwnContent is like Own, but takes the content and meta of a node that has not been made yet.
func OwnContent(content string, meta map[string]string) string {
	beside := meta[terms.Beside]
	if beside == "" {
		return content
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(bytesOf(content), &fields) != nil {
		return content
	}
	for name := range strings.SplitSeq(beside, ",") {
		delete(fields, name)
	}
	own, err := canon.Append(nil, fields)
	if err != nil {
		return content
	}
	return string(own)
}

// Time returns the time at which the node was made, or zero if unknown.
func (n *Node) Time() time.Time {
	if n == nil || n.at == noTime {
		return time.Time{}
	}
	return time.Unix(0, n.at).UTC()
}

// Stamped returns a copy of the node with the given time, or n itself if it already has a time. The id stays the same.
func (n *Node) Stamped(at time.Time) *Node {
	if n == nil || n.at != noTime || nanos(at) == noTime {
		return n
	}
	stamped, _ := newNode(struct{}{}, false)
	stamped.id, stamped.typ, stamped.content = n.id, n.typ, n.content
	stamped.parents, stamped.value, stamped.meta = n.parents, n.value, n.meta
	stamped.at = nanos(at)
	return stamped
}

// Meta returns a copy of the node's metadata, which is not part of its id.
func (n *Node) Meta() map[string]string {
	if n == nil {
		return nil
	}
	return maps.Clone(n.meta)
}

// Get returns one field of the content, which should be a JSON object. It returns fallback if the node is nil, the content is not
// an object or the field is missing. Numbers have the type json.Number, so that integers keep all their digits.
func (n *Node) Get(field string, fallback any) any {
	v, ok := n.At(field)
	if !ok {
		return fallback
	}
	return v
}

// At returns the value found by following the field names in path into the content, and whether it exists. Numbers have the type
// json.Number.
func (n *Node) At(path ...string) (any, bool) {
	raw, ok := n.field(path)
	if !ok {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err == nil
}

// field returns the JSON found by following the field names in path into the content, and whether it exists.
func (n *Node) field(path []string) (json.RawMessage, bool) {
	if n == nil {
		return nil, false
	}
	raw := json.RawMessage(bytesOf(n.content))
	for _, field := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil {
			return nil, false
		}
		next, ok := object[field]
		if !ok {
			return nil, false
		}
		raw = next
	}
	return raw, true
}

// Text returns the content as plain text: a string unchanged, the field "text" of an
// object if it is a string, otherwise the JSON text of Own. It is "" for a nil node.
func (n *Node) Text() string {
	v, ok := n.At()
	if !ok {
		return ""
	}
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		if s, ok := v["text"].(string); ok {
			return s
		}
	}
	return n.Own()
}

// String returns the type and an abbreviated id, for use in messages.
func (n *Node) String() string {
	if n == nil {
		return "no node"
	}
	return fmt.Sprintf("%s %.12s", n.typ, n.id.String())
}

// bytesOf returns the bytes of s without copying. They must only be read.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
