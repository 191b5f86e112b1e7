package structured

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// Media extracts the media from JSON that a model will read. It replaces each media item with a line such as "[media 1: a.png,
// image/png, 34 KB]", and returns the resulting JSON and the media, in the order of their numbers.
//
// The schema determines what is media: an object of type llm.Media, or a string with contentEncoding base64 and a
// contentMediaType, which may end in an asterisk. If media have no content, are not base64 or are too large, the error names the
// field. JSON without media is returned unchanged.
func Media(data []byte, s *schema.Schema) (text []byte, media []*llm.Media, err error) {
	if s == nil || !bytes.Contains(s.JSON(), []byte(`"contentEncoding"`)) {
		return data, nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, nil, err
	}
	var found shown
	if value, err = found.walk(value, s, ""); err != nil || len(found) == 0 {
		return data, nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err = enc.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), found, err
}

// MediaTypes returns the media types in a schema, such as "image/*". For media without a type it returns "*/*".
func MediaTypes(s *schema.Schema) (types []string) {
	var whole any
	if s == nil || json.Unmarshal(s.JSON(), &whole) != nil {
		return nil
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if v["contentEncoding"] == "base64" {
				marked, _ := v["contentMediaType"].(string) // empty for an llm.Media
				types = append(types, cmp.Or(marked, "*/*"))
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(v[name])
			}
		case []any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(whole)
	return types
}

// MediaLine returns the line that replaces media number n, counted from 1.
func MediaLine(n int, m *llm.Media) string { return fmt.Sprintf("[media %d: %s]", n, m) }

// shown is the list of media extracted from a value.
type shown []*llm.Media

// walk returns a value with the media in it replaced, and appends the media to the list.
func (list *shown) walk(v any, s *schema.Schema, where string) (any, error) {
	if s == nil {
		return v, nil
	}
	var err error
	switch v := v.(type) {
	case string:
		if encoding, mediaType := s.Encoding(); encoding == "base64" && mediaType != "" && v != "" {
			return list.decode(v, mediaType, where)
		}
	case map[string]any:
		if m := mediaOf(v, s); m != nil {
			return list.add(m, where)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			within, _ := s.At(name)
			if v[name], err = list.walk(v[name], within, strings.TrimPrefix(where+"."+name, ".")); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			within, _ := s.At(strconv.Itoa(i))
			if v[i], err = list.walk(v[i], within, fmt.Sprintf("%s[%d]", where, i)); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// mediaOf returns the llm.Media that an object represents, or nil if it represents none. The schema of such an object has a
// property "data" in base64, and a property "type".
func mediaOf(fields map[string]any, s *schema.Schema) *llm.Media {
	data, _ := s.At("data")
	if encoding, mediaType := data.Encoding(); encoding != "base64" || mediaType != "" || !slices.Contains(s.Properties(), "type") {
		return nil
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	m := &llm.Media{}
	if dec.Decode(m) != nil || m.Type == "" {
		return nil
	}
	return m
}

// decode decodes base64 media, and returns the line that replaces them. If the media type ends in an asterisk, such as image/*,
// the actual type is determined from the data.
func (list *shown) decode(text, mediaType, where string) (any, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, invalid(where, fmt.Errorf("want base64: %w", err))
	}
	m := &llm.Media{Type: mediaType, Data: data}
	if prefix, any := strings.CutSuffix(mediaType, "*"); any {
		if m, err = llm.NewMedia("", data); err != nil || !strings.HasPrefix(m.Type, prefix) {
			return nil, invalid(where, fmt.Errorf("want media of type %s", mediaType))
		}
	}
	return list.add(m, where)
}

func (list *shown) add(m *llm.Media, where string) (any, error) {
	if err := m.Check(); err != nil {
		return nil, invalid(where, err)
	}
	*list = append(*list, m)
	return MediaLine(len(*list), m), nil
}

func invalid(where string, err error) error {
	if where == "" {
		return err
	}
	return fmt.Errorf("%s: %w", where, err)
}
