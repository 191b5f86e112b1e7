package schema

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Schema is a JSON Schema of draft 2020-12. It is immutable and safe for concurrent use. The first validation compiles it. A nil
// *Schema accepts every value.
type Schema struct {
	root     any  // *object or bool
	foldable bool // every reference is a pointer from the root, because no $id below the root changes the base

	text     func() []byte // text and ordered return the results of JSON and Ordered
	ordered  func() []byte
	compiled func() (*graph, error)

	verdicts cache[*Schema, []Problem] // results of Compatible for this schema as the producer
	places   cache[string, *Schema]    // the results of At
}

func newSchema(root any) *Schema {
	s := &Schema{root: root, foldable: !hasInnerID(root, true)}
	s.text = sync.OnceValue(func() []byte { return appendJSON(nil, root, false) })
	s.ordered = sync.OnceValue(func() []byte { return appendJSON(nil, root, true) })
	s.compiled = sync.OnceValues(func() (*graph, error) {
		document, err := decodeDocument(s.text())
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		g, err := compileLibrary(document)
		if err != nil {
			return nil, compileError(err, document)
		}
		return g, nil
	})
	return s
}

func hasInnerID(node any, root bool) bool {
	o, ok := node.(*object)
	if !ok {
		return false
	}
	found := !root && o.has("$id")
	o.mapSchemas(func(_ string, below any) any {
		found = found || hasInnerID(below, false)
		return below
	})
	return found
}

// maxText is the maximum size of a schema's text in bytes. The size is limited because compiling takes time quadratic in the number
// of schemas in the text.
const maxText = 512 << 10

// Parse parses a schema in JSON text of at most 512 KiB. The default draft is 2020-12. If the text is malformed, a part of it is
// not a schema, or a reference leads outside the schema, the error says where.
func Parse(data []byte) (*Schema, error) {
	if len(data) > maxText {
		return nil, fmt.Errorf("schema: the text has %d bytes, at most %d are read", len(data), maxText)
	}
	root, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	switch root.(type) {
	case *object, bool:
	default:
		return nil, fmt.Errorf("schema: want an object or a boolean, got %s", describe(root))
	}
	s := newSchema(root)
	if _, err := s.compiled(); err != nil {
		return nil, err
	}
	return s, nil
}

// JSON returns the schema as JSON text without white space and with sorted names. Equal schemas have the same text. The caller may
// modify the slice.
func (s *Schema) JSON() []byte {
	if s == nil {
		return []byte("true")
	}
	return bytes.Clone(s.text())
}

// Ordered returns the schema as JSON text in which properties keep their declared order. Models write properties in the order in
// which a schema lists them.
func (s *Schema) Ordered() []byte {
	if s == nil {
		return []byte("true")
	}
	return bytes.Clone(s.ordered())
}

// Object reports whether the schema describes objects and has no alternatives, allOf or reference at the top level.
func (s *Schema) Object() bool {
	if s == nil {
		return false
	}
	root, ok := s.root.(*object)
	if !ok || slices.ContainsFunc([]string{"anyOf", "oneOf", "allOf", "$ref"}, root.has) {
		return false
	}
	kind := root.values["type"]
	return kind == "object" || slices.Contains(root.list("type"), any("object")) || kind == nil && root.has("properties")
}

// Below returns the text of Ordered for use at a path within another schema, such as "properties", "order". References in the text
// are changed to refer to that place.
func (s *Schema) Below(path ...string) []byte {
	pointer := "#"
	for _, name := range path {
		pointer += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return bytes.ReplaceAll(s.Ordered(), []byte(`"$ref":"#`), []byte(`"$ref":"`+pointer))
}

// MarshalJSON returns the result of JSON.
func (s *Schema) MarshalJSON() ([]byte, error) { return s.JSON(), nil }

// String returns the result of JSON as a string.
func (s *Schema) String() string { return string(s.JSON()) }

// cacheLimit is the maximum number of entries in each cache. Without a limit, a server that parses a schema with every request
// would keep all of these schemas alive.
const cacheLimit = 1024

// cache is a bounded map for concurrent use. When it is full, it drops all entries.
type cache[K comparable, V any] struct {
	m sync.Map
	n atomic.Int32
}

func (c *cache[K, V]) get(key K) (V, bool) {
	v, ok := c.m.Load(key)
	if !ok {
		var zero V
		return zero, false
	}
	return v.(V), true
}

// put stores value unless key already has a value. It returns the stored value.
func (c *cache[K, V]) put(key K, value V) V {
	if c.n.Load() >= cacheLimit {
		c.m.Clear()
		c.n.Store(0)
	}
	kept, loaded := c.m.LoadOrStore(key, value)
	if !loaded {
		c.n.Add(1)
	}
	return kept.(V)
}
