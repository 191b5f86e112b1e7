package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// pageHTTP is the page that TestHTTPPage writes.
const pageHTTP = "../docs/reference/http.md"

// TestHTTPPage holds the page about the HTTP interface to the OpenAPI document. -update writes it.
func TestHTTPPage(t *testing.T) {
	want, err := httpPage(document)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(pageHTTP, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(pageHTTP); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the document says: go test ./serve -run TestHTTPPage -update (%v)", pageHTTP, err)
	}
}

// schemaOf is the part of a JSON Schema that the page shows.
type schemaOf struct {
	Ref         string              `json:"$ref"`
	Type        any                 `json:"type"`
	Items       *schemaOf           `json:"items"`
	Values      *schemaOf           `json:"additionalProperties"`
	Properties  map[string]schemaOf `json:"properties"`
	Description string              `json:"description"`
	Required    []string            `json:"required"`
	Enum        []string            `json:"enum"`
	Format      string              `json:"format"`
}

// UnmarshalJSON takes true, which allows anything.
func (s *schemaOf) UnmarshalJSON(data []byte) error {
	if string(data) == "true" {
		return nil
	}
	type plain schemaOf
	return json.Unmarshal(data, (*plain)(s))
}

func (s schemaOf) name() string {
	switch {
	case s.Ref != "":
		name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	case s.Items != nil:
		return "list of " + s.Items.name()
	case s.Type == "object" && s.Values != nil && (s.Values.Type != nil || s.Values.Ref != ""):
		return "map of " + s.Values.name()
	case s.Format == "date-time":
		return "time"
	}
	if name, ok := s.Type.(string); ok {
		return name
	}
	return "any"
}

func httpPage(document []byte) ([]byte, error) {
	type content map[string]struct{ Schema schemaOf }
	var d struct {
		Tags  []struct{ Name, Description string }
		Paths map[string]map[string]struct {
			Tags                 []string
			Summary, Description string
			Parameters           []struct {
				Name, Ref, In string
			}
			RequestBody struct{ Content content }
			Responses   map[string]struct{ Content content }
		}
		Components struct{ Schemas map[string]schemaOf }
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("# HTTP\n\nThe requests that `stone serve` answers, as its document `/openapi.json` describes them. A caller sends its token as\n" +
		"`Authorization: Bearer TOKEN`. An error is a [Problem](#problem), as in RFC 9457, or has OpenAI's form for OpenAI's requests. [Publish pipelines over\n" +
		"HTTP](../how-to/serve.md) says how to use it.\n")
	order := []string{"get", "put", "post", "delete"}
	for _, tag := range d.Tags {
		var rows []string
		for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
			for _, method := range order {
				op, ok := d.Paths[path][method]
				if !ok || len(op.Tags) == 0 || op.Tags[0] != tag.Name {
					continue
				}
				body, answer := "", ""
				if one, ok := op.RequestBody.Content["application/json"]; ok {
					body = one.Schema.name()
				}
				for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
					if status >= "400" {
						break
					}
					said := status
					if one, ok := op.Responses[status].Content["application/json"]; ok && one.Schema.Ref != "" {
						said += " " + one.Schema.name()
					} else if _, ok := op.Responses[status].Content["text/event-stream"]; ok {
						said += " events"
					}
					answer = strings.TrimPrefix(answer+", "+said, ", ")
				}
				rows = append(rows, fmt.Sprintf("| `%s %s` | %s | %s | %s |\n", strings.ToUpper(method), path, strings.TrimSpace(op.Summary+". "+op.Description), body, answer))
			}
		}
		if len(rows) > 0 {
			fmt.Fprintf(&b, "\n## Requests: %s\n\n%s\n\n| request | does | body | answer |\n|---|---|---|---|\n%s", tag.Name, tag.Description, strings.Join(rows, ""))
		}
	}
	b.WriteString("\n# Types\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		if len(s.Properties) == 0 && len(s.Enum) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n", name)
		if len(s.Enum) > 0 {
			fmt.Fprintf(&b, "One of `%s`.\n", strings.Join(s.Enum, "`, `"))
			continue
		}
		b.WriteString("| field | type | meaning |\n|---|---|---|\n")
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[field]
			what := cmp.Or(p.Description, "")
			if slices.Contains(s.Required, field) {
				what = strings.TrimPrefix(what+"; always there", "; ")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", field, p.name(), strings.ReplaceAll(strings.Join(strings.Fields(what), " "), "|", `\|`))
		}
	}
	return b.Bytes(), nil
}
