package structured_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/sandbox"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/x/mcp"
)

// toolRules are what a provider publishes about the schemas of tools that are not strict, written down
// from its pages and the errors of its API, not from the code that is tested.
type toolRules struct {
	keywords []string       // nil is every keyword of draft 2020-12
	names    *regexp.Regexp // of properties
	enums    []string       // types of the values of an enum; nil is any
}

// atTop are the keywords that OpenAI and Anthropic refuse at the top of a tool's schema.
var atTop = []string{"oneOf", "anyOf", "allOf", "enum", "const", "not"}

var publishedTools = map[*structured.Dialect]toolRules{
	structured.OpenAI:    {},
	structured.Anthropic: {names: regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)},
	structured.Gemini: {keywords: []string{"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems",
		"minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required"}, enums: []string{"string", "float64"}},
}

// inspect returns why a provider refuses the schema of a tool.
func (r toolRules) inspect(text json.RawMessage) (faults []string) {
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		return []string{err.Error()}
	}
	if root["type"] != "object" || object(root["properties"]) == nil {
		faults = append(faults, "the root is no object with properties")
	}
	for _, keyword := range atTop {
		if root[keyword] != nil {
			faults = append(faults, keyword+" at the top")
		}
	}
	if _, err := schema.Parse(text); err != nil { // of draft 2020-12, with every reference resolved
		faults = append(faults, err.Error())
	}
	return append(faults, r.below(root, "")...)
}

func (r toolRules) below(o map[string]any, where string) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, where+": "+fmt.Sprintf(format, args...)) }
	for keyword := range o {
		if r.keywords != nil && !slices.Contains(r.keywords, keyword) {
			fault("%s is not permitted", keyword)
		}
	}
	if pattern, ok := o["pattern"].(string); ok {
		if _, err := regexp.Compile(pattern); err != nil {
			fault("%s is not a regex", pattern)
		}
	}
	if o["$ref"] != nil && r.keywords != nil && len(o) > 1 {
		fault("$ref has siblings")
	}
	if slices.Contains(typesOf(o), "array") && o["items"] == nil {
		fault("array schema missing items")
	}
	values, _ := o["enum"].([]any)
	for _, v := range values {
		if r.enums != nil && !slices.Contains(r.enums, fmt.Sprintf("%T", v)) {
			fault("an enum with %v", v)
		}
	}
	properties := object(o["properties"])
	required, _ := o["required"].([]any)
	for _, name := range required {
		if _, ok := properties[name.(string)]; !ok {
			fault("required %v is not defined", name)
		}
	}
	follow := func(v any, name string) {
		if below, ok := v.(map[string]any); ok {
			faults = append(faults, r.below(below, where+"/"+name)...)
		} else if v != nil && name != "additionalProperties" {
			fault("%s is %v, and no schema", name, v)
		}
	}
	for name, v := range properties {
		if r.names != nil && !r.names.MatchString(name) {
			fault("property keys should match pattern: %q", name)
		}
		follow(v, name)
	}
	for name, v := range object(o["$defs"]) {
		follow(v, name)
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		follow(o[keyword], keyword)
	}
	for _, keyword := range []string{"anyOf", "oneOf", "prefixItems"} {
		list, _ := o[keyword].([]any)
		for _, v := range list {
			follow(v, keyword)
		}
	}
	return faults
}

func typesOf(o map[string]any) (out []string) {
	switch t := o["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, name := range t {
			out = append(out, name.(string))
		}
	}
	return out
}

// judge projects a tool for every provider.
func judge(t *testing.T, tool llm.Tool) (strict int) {
	t.Helper()
	for name, d := range map[string]*structured.Dialect{"openai": structured.OpenAI, "anthropic": structured.Anthropic, "gemini": structured.Gemini} {
		loose := d.Tools([]llm.Tool{tool}, false)[0]
		if faults := publishedTools[d].inspect(loose.Schema); faults != nil || loose.Strict {
			t.Errorf("%s refuses %s: %s\nfrom %s\nto   %s", name, tool.Name, strings.Join(faults, "; "), tool.Schema, loose.Schema)
		}
		if enforced := d.Tools([]llm.Tool{tool}, true)[0]; enforced.Strict {
			strict++
			if faults := published[name].inspect(enforced.Schema); faults != nil {
				t.Errorf("%s refuses the strict %s: %s\nfrom %s\nto   %s", name, tool.Name, strings.Join(faults, "; "), tool.Schema, enforced.Schema)
			}
		}
	}
	return strict
}

func TestTools(t *testing.T) {
	for name, text := range map[string]string{
		"oneOf at the top": `{"type":"object","properties":{"path":{"type":"string"},"url":{"type":"string"}},"oneOf":[{"required":["path"]},{"required":["url"]}]}`,
		"no type":          `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"string"}]}`,
		"allOf at the top": `{"allOf":[{"$ref":"#/definitions/a"},{"not":{"required":["z"]}}],"definitions":{"a":{"type":"object","properties":{"b":{"const":true}}}}}`,
		"enum and not":     `{"type":"object","enum":[{"a":1}],"not":{"required":["b"]},"properties":{"a":{"enum":[1,null,"x",false]}}}`,
		"draft 7":          `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"t":{"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":false},"d":{"type":"array"}},"dependencies":{"t":["d"]}}`,
		"ECMA pattern":     `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!\\.)[a-z]+$"}},"patternProperties":{"^x-(?=y)":{"type":"string"}},"additionalProperties":false}`,
		"names":            `{"type":"object","properties":{"$filter":{"type":"string"},"a b":{"type":"integer"},"ok":{"type":"integer"}},"required":["$filter","ok"],"additionalProperties":false}`,
		"recursion":        `{"type":"object","properties":{"node":{"$ref":"#/$defs/n"}},"required":["node"],"$defs":{"n":{"type":"object","properties":{"list":{"type":"array","items":{"$ref":"#/$defs/n"}},"next":{"$ref":"#/$defs/n","description":"More."}},"required":["next"]}}}`,
		"dynamic":          `{"$dynamicAnchor":"t","type":"object","properties":{"below":{"$dynamicRef":"#t"}},"unevaluatedProperties":false}`,
		"nested required":  `{"type":"object","properties":{"at":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}}}`,
		"required unknown": `{"type":"object","required":["who"]}`,
		"true":             `{"type":"object","properties":{"any":true,"none":false,"free":{"type":"object","additionalProperties":{"type":["string","number"]}}}}`,
		"strict":           `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
	} {
		tool := llm.Tool{Name: name, Description: "D.", Schema: json.RawMessage(text)}
		if strict := judge(t, tool); (strict > 0) != (name == "strict") {
			t.Errorf("%s is strict for %d providers", name, strict)
		}
	}
	offer := structured.Anthropic.Tools([]llm.Tool{{Name: "f", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"oneOf":[{"required":["a"]},{}]}`)}}, true)[0]
	if want := `Reads. Must fit {"oneOf":[{"required":["a"]},{}]}.`; offer.Description != want {
		t.Errorf("description %q, want %q", offer.Description, want)
	}
}

// TestToolsOptional has optional properties: what OpenAI enforces would change their meaning.
func TestToolsOptional(t *testing.T) {
	tool := llm.Tool{Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`)}
	for d, want := range map[*structured.Dialect]bool{structured.OpenAI: false, structured.Anthropic: true, structured.Gemini: false} {
		if got := d.Tools([]llm.Tool{tool}, true)[0].Strict; got != want {
			t.Errorf("strict %v, want %v", got, want)
		}
	}
	many := slices.Repeat([]llm.Tool{tool}, 30)
	strict := 0
	for _, offer := range structured.Anthropic.Tools(many, true) {
		if offer.Strict {
			strict++
		}
	}
	if strict != 20 {
		t.Errorf("%d strict tools, want the 20 that the provider takes", strict)
	}
}

// servers are public MCP servers that start and list their tools without a network.
var servers = []string{
	"@playwright/mcp", "@upstash/context7-mcp", "chrome-devtools-mcp", "@notionhq/notion-mcp-server",
	"@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-memory", "@modelcontextprotocol/server-sequential-thinking",
	"@modelcontextprotocol/server-github", "@modelcontextprotocol/server-gitlab", "@modelcontextprotocol/server-slack",
	"@modelcontextprotocol/server-google-maps", "@antv/mcp-server-chart", "@perplexity-ai/mcp-server",
}

// TestToolsOfServers projects the tools of real servers.
func TestToolsOfServers(t *testing.T) {
	need.Time(t)
	keys := map[string]llm.Secret{"NOTION_TOKEN": "ntn_x"}
	for _, name := range []string{"GITHUB_PERSONAL_ACCESS_TOKEN", "GITLAB_PERSONAL_ACCESS_TOKEN", "SLACK_BOT_TOKEN", "SLACK_TEAM_ID", "GOOGLE_MAPS_API_KEY", "PERPLEXITY_API_KEY"} {
		keys[name] = "x"
	}
	tools, refused := 0, 0
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			dir := peer.Module(t, name)
			peer.Held(t, name, "the schemas of its tools")
			out, err := exec.Command("node", "-p", `const b=require(`+fmt.Sprintf("%q", filepath.Join(dir, "package.json"))+`).bin; typeof b=="string"?b:Object.values(b)[0]`).Output()
			if err != nil {
				t.Fatal(err)
			}
			server, err := mcp.Connect(t.Context(), mcp.Config{Name: "peer", Command: []string{"node", filepath.Join(dir, strings.TrimSpace(string(out)))},
				Env: keys, StartTimeout: time.Minute, Sandbox: sandbox.Policy{Method: sandbox.Unconfined}})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			list, err := server.Tools(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range list {
				if m.Tool.Left != nil {
					t.Error(m.Tool.Left)
				}
				if _, unchecked, err := schema.ParseForeign(m.Tool.Schema); err != nil || unchecked != nil {
					t.Errorf("%s: unchecked %v, %v", m.Name, unchecked, err)
				}
				judge(t, m.Tool.Tool)
				if publishedTools[structured.Gemini].inspect(m.Tool.Schema) != nil {
					refused++
				}
			}
			tools += len(list)
		})
	}
	t.Logf("%d tools; as they are, a provider would refuse %d", tools, refused)
	if tools > 0 && refused == 0 {
		t.Error("no tool needs a projection: the rules find nothing")
	}
}

// TestLoose: what fits the schema of a tool fits what a provider is told of it.
func TestLoose(t *testing.T) {
	for range 5 {
		rapid.Check(t, func(t *rapid.T) {
			typ := structs(t, 3)
			s, err := schema.ForType(typ)
			if err != nil {
				t.Fatal(err)
			}
			arguments := draw(t, s.Ordered())
			if s.Validate(t.Context(), arguments) != nil {
				return // the drawer knows no base64
			}
			for name, d := range dialects {
				told := d.Tools([]llm.Tool{{Name: "t", Schema: s.Ordered()}}, false)[0].Schema
				p, err := schema.Parse(told)
				if err != nil {
					t.Fatalf("%s: %s: %v", name, told, err)
				}
				if err := p.Validate(t.Context(), arguments); err != nil {
					t.Fatalf("%s is told %s of %s, which has no place for %s: %v", name, told, s, arguments, err)
				}
			}
		})
	}
}
