// Package parts converts between values of pipelines and the parts of A2A messages. In a value, a file is an llm.Media or a
// base64 string whose schema has a contentMediaType.
package parts

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// Field is the metadata key under which a part names the property that its file belongs to.
const Field = "field"

// Take removes the files from a value and returns them. The result rest is the value without the properties that were files, or
// nil if nothing is left. A file nested deeper inside the value is replaced by a numbered placeholder, as in a message to a
// model. It is an error if the files have more than llm.MaxMedia bytes in total.
func Take(value json.RawMessage, s *schema.Schema) (rest json.RawMessage, files sdk.ContentParts, err error) {
	shown, media, err := structured.Media(value, s)
	if err != nil || len(media) == 0 {
		return value, nil, err
	}
	lines, size := map[string]*sdk.Part{}, 0
	for i, m := range media {
		p := &sdk.Part{MediaType: m.Type, Filename: m.Name, Content: sdk.Raw(m.Data)}
		if m.URL != "" {
			p.Content = sdk.URL(m.URL)
		}
		if size += len(m.Data); size > llm.MaxMedia {
			return nil, nil, fmt.Errorf("the files have more than %d MB together: pass the URLs of some", llm.MaxMedia/1_000_000)
		}
		files, lines[structured.MediaLine(i+1, m)] = append(files, p), p
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(shown, &object) != nil { // the value itself is a file, or a list of files
		if taken(shown, "", lines) {
			return nil, files, nil
		}
		return shown, files, nil
	}
	maps.DeleteFunc(object, func(name string, v json.RawMessage) bool { return taken(v, name, lines) })
	if len(object) == 0 {
		return nil, files, nil
	}
	rest, err = json.Marshal(object)
	return rest, files, err
}

// taken reports whether a value is a placeholder of a file or a list of placeholders. If so, it sets the field of these files.
func taken(value json.RawMessage, field string, lines map[string]*sdk.Part) bool {
	var line string
	list := []string{}
	if json.Unmarshal(value, &line) == nil {
		list = append(list, line)
	} else if json.Unmarshal(value, &list) != nil {
		return false
	}
	for _, one := range list {
		p := lines[one]
		if p == nil {
			return false
		}
		if field != "" {
			p.SetMeta(Field, field)
		}
	}
	return len(list) > 0
}

// Media returns the file of a part. It returns nil for a part that contains text or data. The URL of a file is not fetched.
func Media(p *sdk.Part) (*llm.Media, error) {
	var m *llm.Media
	var err error
	switch content := p.Content.(type) {
	case sdk.Raw:
		if m = (&llm.Media{Type: p.MediaType, Data: content, Name: p.Filename}); m.Type == "" {
			if m, err = llm.NewMedia(p.Filename, content); err != nil {
				m = &llm.Media{Type: unknown, Data: content, Name: p.Filename}
			}
		}
		err = m.Check()
	case sdk.URL:
		if u, failed := url.Parse(string(content)); failed != nil || u.Scheme != "data" && (u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
			return nil, errors.New("the URL of a file is neither http, https nor data")
		}
		m, err = llm.MediaURL(string(content), cmp.Or(p.MediaType, unknown), p.Filename)
	}
	return m, err
}

const unknown = "application/octet-stream"

// A Place describes where a value can contain files. The zero Place accepts none.
type Place struct {
	Types  []string // see TypesOf
	fields map[string]form
}

// form says how files are represented in a field.
type form struct {
	list bool
	kind string // contentMediaType of a base64 string; empty for an llm.Media
}

// TypesOf returns the media types, such as "image/*", of the files that values of a schema can contain, without duplicates. If
// values cannot contain files, it returns nil.
func TypesOf(s *schema.Schema) []string {
	types := structured.MediaTypes(s)
	slices.Sort(types)
	return slices.Compact(types)
}

// PlaceOf returns the places where values of a schema can contain files: the value as a whole, or some of its properties.
func PlaceOf(s *schema.Schema) Place {
	p := Place{Types: TypesOf(s), fields: map[string]form{}}
	if f, ok := formOf(s); ok {
		p.fields[""] = f
		return p
	}
	for _, name := range s.Properties() {
		within, _ := s.At(name)
		if f, ok := formOf(within); ok {
			p.fields[name] = f
		}
	}
	return p
}

func formOf(s *schema.Schema) (f form, ok bool) {
	if items, is := s.At("0"); is && items != nil {
		f.list, s = true, items
	}
	if encoding, kind := s.Encoding(); encoding == "base64" {
		f.kind = kind
		return f, kind != ""
	}
	data, _ := s.At("data")
	encoding, kind := data.Encoding()
	return f, encoding == "base64" && kind == "" && slices.Contains(s.Properties(), "type")
}

// Put returns the value with the files of a message added to it. If the message contains only files, the argument value is nil.
func (p Place) Put(value json.RawMessage, files sdk.ContentParts) (json.RawMessage, error) {
	given := map[string][]json.RawMessage{}
	for _, part := range files {
		name, err := p.name(part)
		if err != nil {
			return nil, err
		}
		file, err := p.fields[name].file(part)
		if err != nil {
			return nil, err
		}
		if given[name] = append(given[name], file); len(given[name]) > 1 && !p.fields[name].list {
			return nil, fmt.Errorf("there are %d files: want one%s", len(files), in(name))
		}
	}
	object := map[string]json.RawMessage{}
	if value != nil && (given[""] != nil || json.Unmarshal(value, &object) != nil) {
		return nil, errors.New("there is text or data beside the files, which are the whole input")
	}
	for name, list := range given {
		file := list[0]
		if p.fields[name].list {
			all, err := json.Marshal(list)
			if err != nil {
				return nil, err
			}
			file = all
		}
		if name == "" {
			return file, nil
		}
		if object[name] != nil {
			return nil, fmt.Errorf("there are files, and %q in the data: want one of them", name)
		}
		object[name] = file
	}
	return json.Marshal(object)
}

func in(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" in %q", name)
}

// name returns the name of the field that a file belongs to: the name in its metadata or, if there is only one field, that field.
func (p Place) name(part *sdk.Part) (string, error) {
	if name, _ := part.Metadata[Field].(string); name != "" {
		if _, ok := p.fields[name]; ok {
			return name, nil
		}
	}
	names := slices.Sorted(maps.Keys(p.fields))
	switch len(names) {
	case 0:
		return "", errors.New("it takes no files")
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("several fields take files: put one into the metadata of the part, as {%q: %q}: %s", Field, names[0], strings.Join(names, ", "))
}

// file returns a file in the form that its field requires.
func (f form) file(part *sdk.Part) (json.RawMessage, error) {
	m, err := Media(part)
	switch {
	case err != nil:
		return nil, err
	case f.kind == "":
		return json.Marshal(m)
	case m.URL != "":
		return nil, errors.New("a file at a URL is not fetched: send its bytes")
	}
	if prefix, any := strings.CutSuffix(f.kind, "*"); m.Type != f.kind && !(any && strings.HasPrefix(m.Type, prefix)) {
		return nil, fmt.Errorf("a file of type %s: want %s", m.Type, f.kind)
	}
	return json.Marshal(m.Data)
}
