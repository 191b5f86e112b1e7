package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// JSON removes secrets from the strings, numbers and names in JSON text, and reports whether it found any. If it found none, it
// returns the text unchanged.
func (s *Set) JSON(raw []byte) (clean []byte, found bool, err error) {
	if !s.Holds(string(raw)) {
		return raw, false, nil
	}
	var tree any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return nil, true, err
	}
	hits := 0
	tree = s.tree(tree, &hits)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(tree); err != nil {
		return nil, true, err
	}
	if clean = bytes.TrimSuffix(out.Bytes(), []byte("\n")); hits == 0 {
		clean = raw
	}
	if s.Holds(controls.Replace(string(clean))) {
		return nil, true, errors.New("a secret is spread over several values")
	}
	return clean, hits > 0, nil
}

// Text is like Clean, for text that may be JSON: valid JSON stays valid. Call it on the output of other programs before parsing,
// because error messages quote parts of invalid text.
func (s *Set) Text(text string) string {
	if s.Empty() || !s.Holds(text) {
		return text
	}
	if json.Valid([]byte(text)) {
		if clean, _, err := s.JSON([]byte(text)); err == nil {
			return string(clean)
		}
	}
	return s.Clean(text)
}

// controls decodes the escapes that end in a letter, because the letter could be mistaken for the first letter of a secret.
var controls = strings.NewReplacer(`\\`, `\\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\b`, "\b", `\f`, "\f")

// tree removes secrets from a decoded value, and adds their number to *hits.
func (s *Set) tree(v any, hits *int) any {
	switch v := v.(type) {
	case string:
		clean := s.Clean(v)
		if clean != v {
			*hits++
		}
		return clean
	case json.Number:
		if s.Holds(v.String()) {
			*hits++
			return Mark
		}
	case []any:
		for i := range v {
			v[i] = s.tree(v[i], hits)
		}
	case map[string]any:
		for k, below := range v {
			if clean := s.Clean(k); clean != k {
				*hits++
				delete(v, k)
				k = clean
			}
			v[k] = s.tree(below, hits)
		}
	}
	return v
}
