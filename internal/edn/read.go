package edn

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Limits sets the maximum size and nesting of the texts that the reader accepts. In memory, the values take up at most about a
// hundred times the size of the text; for plans, ten times is typical. Independently of Limits, a number can have at most 10,000
// digits, the exponent of a decimal must be within ±10,000, and the namespace of a map can be at most 255 bytes long.
type Limits struct {
	Bytes int // maximum size of a text; 0 means 8 MiB; at most 1 GiB
	Depth int // maximum nesting of values, including tags and #_; 0 means 512; at most 10,000
}

func (l Limits) bytes() int { return min(cmp.Or(l.Bytes, 8<<20), 1<<30) }
func (l Limits) depth() int { return min(cmp.Or(l.Depth, 512), 10_000) }

// Read returns the only value in a UTF-8 text. Errors are of type [*Error].
func Read(data []byte, limits Limits) (Value, error) {
	r, err := newReader(data, limits)
	if err != nil {
		return Value{}, err
	}
	v, err := r.value("a value")
	if err != nil {
		return Value{}, err
	}
	if err := r.skip(); err != nil {
		return Value{}, err
	}
	if r.at < len(r.text) {
		return Value{}, r.errorf(r.at, "expected the end of the text after its one value, found %s", r.found())
	}
	return v, nil
}

// reader reads a text in a single pass.
type reader struct {
	*source
	builder
	at    int // offset of the next byte
	depth int // current nesting
	most  int // maximum nesting
}

// newSource returns a source for a text, or an error if the text is too large or not valid UTF-8.
func newSource(data []byte, limits Limits) (*source, error) {
	if most := limits.bytes(); len(data) > most {
		return nil, &Error{Line: 1, Column: 1, Reason: fmt.Sprintf("expected a text of at most %d bytes, found %d", most, len(data))}
	}
	s := &source{text: string(data)}
	if !utf8.ValidString(s.text) {
		offset := firstInvalid(s.text)
		return nil, s.errorf(offset, "expected UTF-8, found the byte %#x", s.text[offset])
	}
	if strings.HasPrefix(s.text, "\uFEFF") {
		return nil, s.errorf(0, "expected no byte order mark: store the text as UTF-8 without one")
	}
	return s, nil
}

func newReader(data []byte, limits Limits) (*reader, error) {
	s, err := newSource(data, limits)
	if err != nil {
		return nil, err
	}
	return &reader{source: s, most: limits.depth()}, nil
}

// firstInvalid returns the offset of the first byte that is not valid UTF-8.
func firstInvalid(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return i
		}
	}
	return len(s)
}

// skip moves to the next value or closing bracket. It skips white space, comments, and values after #_.
func (r *reader) skip() error {
	for r.at < len(r.text) {
		c := r.text[r.at]
		switch {
		case classes[c]&blank != 0:
			r.at++
		case c == ';':
			if length := strings.IndexByte(r.text[r.at:], '\n'); length >= 0 {
				r.at += length
			} else {
				r.at = len(r.text)
			}
		case c == '#' && strings.HasPrefix(r.text[r.at:], "#_"):
			start := r.at
			r.at += len("#_")
			if err := r.enter(start); err != nil {
				return err
			}
			if _, err := r.value("a value to discard after #_"); err != nil {
				return err
			}
			r.depth--
		default:
			return nil
		}
	}
	return nil
}

func (r *reader) enter(start int) error {
	if r.depth++; r.depth > r.most {
		return r.errorf(start, "expected values nested at most %d deep", r.most)
	}
	return nil
}

// found returns a description of the text at the current position for a message.
func (r *reader) found() string {
	if r.at == len(r.text) {
		return "the end of the text"
	}
	if classes[r.text[r.at]]&blank != 0 {
		return "white space"
	}
	end := r.tokenEnd()
	if end == r.at {
		_, size := utf8.DecodeRuneInString(r.text[r.at:])
		end += size
	}
	return show(r.text[r.at:end])
}

// value reads the next value. What is the value's role, for messages.
func (r *reader) value(what string) (Value, error) {
	if err := r.skip(); err != nil {
		return Value{}, err
	}
	if r.at == len(r.text) {
		return Value{}, r.errorf(r.at, "expected %s, found the end of the text", what)
	}
	return r.valueHere(what)
}

// valueHere reads the value at the current position.
func (r *reader) valueHere(what string) (Value, error) {
	start := r.at
	v, err := r.form(what)
	v.source, v.offset = r.source, uint32(start)
	return v, err
}

// form reads a value of any kind at the current position.
func (r *reader) form(what string) (Value, error) {
	start := r.at
	switch c := r.text[r.at]; c {
	case '(':
		items, err := r.items(')', KindList)
		return Value{kind: KindList, more: items}, err
	case '[':
		items, err := r.items(']', KindVector)
		return Value{kind: KindVector, more: items}, err
	case '{':
		return r.mapping("")
	case '"':
		text, err := r.stringText()
		return Value{kind: KindString, text: text}, err
	case '\\':
		return r.char()
	case ':':
		start := r.at
		name := r.token()[1:]
		if reason := checkKeyword(name); reason != "" {
			return Value{}, r.errorf(start, "keyword %s: %s", quote(":"+name), reason)
		}
		return Value{kind: KindKeyword, text: name}, nil
	case '#':
		return r.dispatch()
	case ')', ']', '}':
		return Value{}, r.errorf(start, "expected %s, found %c", what, c)
	case '^':
		return Value{}, r.errorf(start, "expected %s, found ^: EDN has no metadata", what)
	case '\'':
		return Value{}, r.errorf(start, "expected %s, found %c: texts have double quotes, and EDN has no code", what, c)
	case '@', '`', '~':
		return Value{}, r.errorf(start, "expected %s, found %c: EDN has no code, only data", what, c)
	}
	return r.numberOrSymbol()
}

// items reads the elements of a collection whose opening bracket, one byte long, is at the current position.
func (r *reader) items(closing byte, kind Kind) (*collection, error) {
	start := r.at
	if err := r.enter(start); err != nil {
		return nil, err
	}
	r.at++
	base := len(r.stack)
	for {
		if err := r.skip(); err != nil {
			return nil, err
		}
		if r.at == len(r.text) {
			break
		}
		if c := r.text[r.at]; c == ')' || c == ']' || c == '}' {
			break
		}
		v, err := r.valueHere("a value")
		if err != nil {
			return nil, err
		}
		r.stack = append(r.stack, v)
	}
	if r.at == len(r.text) || r.text[r.at] != closing {
		line, column := r.position(start)
		return nil, r.errorf(r.at, "expected %c, for the %s that begins at %d:%d, found %s", closing, kind, line, column, r.found())
	}
	r.at++
	r.depth--
	return r.take(base), nil
}

// mapping reads a map, beginning with its bracket. Keys without a namespace are put into the given namespace.
func (r *reader) mapping(namespace string) (Value, error) {
	entries, err := r.items('}', KindMap)
	if err != nil {
		return Value{}, err
	}
	v := Value{kind: KindMap, more: entries}
	items := v.items()
	if len(items)%2 != 0 {
		return Value{}, noValue(items)
	}
	for i := 0; namespace != "" && i < len(items); i += 2 {
		if err := qualify(namespace, &items[i]); err != nil {
			return Value{}, err
		}
	}
	return unique(v)
}

// qualify puts a key of a map into the map's namespace, unless the key has its own. The namespace _ is removed from a key.
func qualify(namespace string, key *Value) error {
	if key.kind != KindKeyword && key.kind != KindSymbol {
		return nil
	}
	rest, bare := strings.CutPrefix(key.text, "_/")
	switch _, word := constant(rest); {
	case bare && word && key.kind == KindSymbol:
		return key.Errorf("expected a symbol other than nil, true and false in the namespace _, found %s", key.text)
	case bare:
		key.text = rest
	case !strings.Contains(key.text, "/"):
		key.text = namespace + "/" + key.text
	}
	return nil
}

// dispatch reads a value whose text begins with #.
func (r *reader) dispatch() (Value, error) {
	start := r.at
	r.at++
	rest := r.text[r.at:]
	switch {
	case strings.HasPrefix(rest, "{"):
		elements, err := r.items('}', KindSet)
		if err != nil {
			return Value{}, err
		}
		return unique(Value{kind: KindSet, more: elements})
	case strings.HasPrefix(rest, "#"):
		return r.symbolic(start)
	case strings.HasPrefix(rest, ":"):
		return r.namespaced(start)
	}
	tag := r.token()
	if reason := checkTag(tag); reason != "" {
		r.at = start + 1
		if tag == "" || !wordRune([]rune(tag)[0]) {
			reason = "expected a tag, {, _, # or : after #"
		}
		return Value{}, r.errorf(start, "%s, found %s", reason, r.found())
	}
	if err := r.enter(start); err != nil {
		return Value{}, err
	}
	inner, err := r.value("a value after #" + clip(tag))
	if err != nil {
		return Value{}, err
	}
	r.depth--
	return Tagged(tag, inner)
}

// symbolic reads ##Inf, ##-Inf or ##NaN.
func (r *reader) symbolic(start int) (Value, error) {
	r.at = start + len("##")
	switch token := r.token(); token {
	case "Inf":
		return Float(math.Inf(1)), nil
	case "-Inf":
		return Float(math.Inf(-1)), nil
	case "NaN":
		return Float(math.NaN()), nil
	default:
		return Value{}, r.errorf(start, "expected ##Inf, ##-Inf or ##NaN, found ##%s", show(token))
	}
}

// maxNamespace limits the length of a map's namespace, which is written only once but added to each key.
const maxNamespace = 255

// namespaced reads #:name{…}.
func (r *reader) namespaced(start int) (Value, error) {
	r.at = start + len("#:")
	name := r.token()
	if strings.HasPrefix(name, ":") {
		return Value{}, r.errorf(start, "expected #:name{…}: EDN has no current namespace, which #:: asks for")
	}
	if reason := checkPart(name); reason != "" {
		return Value{}, r.errorf(start, "namespace %s of a map: %s", quote(name), reason)
	}
	if len(name) > maxNamespace {
		return Value{}, r.errorf(start, "expected a namespace of at most %d bytes before a map, found %d", maxNamespace, len(name))
	}
	if err := r.skip(); err != nil {
		return Value{}, err
	}
	if !strings.HasPrefix(r.text[r.at:], "{") {
		return Value{}, r.errorf(r.at, "expected { after #:%s, found %s", clip(name), r.found())
	}
	return r.mapping(name)
}
