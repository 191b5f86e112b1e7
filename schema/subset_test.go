package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone/schema"
)

// all is a Subset that knows every constraint, and wants every property required.
var all = &schema.Subset{AllRequired: true, Maps: true, Cycles: "all", Accepts: func(string, any) bool { return true }}

// none knows no constraint but enum, no maps and no cycles.
var none = &schema.Subset{Accepts: func(keyword string, _ any) bool { return keyword == "enum" }}

func TestProject(t *testing.T) {
	type step struct {
		Why  string   `json:"why" jsonschema:"the reason"`
		Act  string   `json:"act" enum:"go,stop"`
		Note string   `json:"note,omitempty"`
		Next *step    `json:"next,omitempty" jsonschema:"what follows"`
		Tags []string `json:"tags,omitempty"`
		Data []byte   `json:"data"`
		Size uint8    `json:"size"`
		Mark *string  `json:"mark" enum:"a,b"`
	}
	s, err := schema.For[step]()
	if err != nil {
		t.Fatal(err)
	}
	// The order is the declared one: a model that must give its reason first reasons before it acts.
	want := `{"type":"object","properties":{` +
		`"why":{"type":"string","description":"the reason"},` +
		`"act":{"type":"string","enum":["go","stop"]},` +
		`"note":{"type":["string","null"]},` +
		`"next":{"anyOf":[{"$ref":"#"},{"type":"null"}],"description":"what follows"},` +
		`"tags":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]},` +
		`"data":{"type":"string","contentEncoding":"base64"},` +
		`"size":{"type":"integer","minimum":0,"maximum":255},` +
		`"mark":{"anyOf":[{"type":"string","enum":["a","b"]},{"type":"null"}]}},` +
		`"required":["why","act","note","next","tags","data","size","mark"],"additionalProperties":false}`
	if got, err := all.Project(s.Ordered()); err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}

	const object = `{"type":"object","additionalProperties":false,"required":[],"properties":{"a":`
	for _, test := range []struct {
		subset             *schema.Subset
		schema, want, fail string // schema and want are those of an optional property "a"
	}{
		{none, `{"type":"integer","minimum":0,"description":"a count"}`, `{"type":"integer","description":"a count Must fit {\"minimum\":0}."}`, ""},
		{none, `{"type":["null","integer"]}`, `{"type":"integer"}`, ""}, // its absence says the same
		{none, `{"type":"array","items":{"type":["null","integer"]},"maxItems":3}`, `{"type":"array","items":{"type":["integer","null"]},"description":"Must fit {\"maxItems\":3}."}`, ""},
		{none, `{"type":["string","integer"],"minLength":1}`, `{"anyOf":[{"type":"string","description":"Must fit {\"minLength\":1}."},{"type":"integer"}]}`, ""},
		{none, `{"type":["string","integer","number"]}`, `{"type":["string","number"]}`, ""},
		{none, `{"const":"x"}`, `{"type":"string","enum":["x"]}`, ""},
		{none, `{"enum":["x",1,null]}`, `{"anyOf":[{"type":"string","enum":["x"]},{"type":"integer","enum":[1]}]}`, ""},
		{none, `{"type":"null"}`, `{"type":"null"}`, ""},
		{none, `{"oneOf":[{"type":"string"},{"type":"null"}],"description":"d"}`, `{"type":"string","description":"d"}`, ""},
		{none, `{"type":"string","anyOf":[{"enum":["x"]},{"pattern":"y"}]}`, `{"anyOf":[{"type":"string","enum":["x"]},{"type":"string","description":"Must fit {\"pattern\":\"y\"}."}]}`, ""},
		{none, `{"allOf":[{"type":"boolean"}],"title":"t"}`, `{"type":"boolean"}`, ""},
		{none, `{"not":{"const":"x"},"type":"string","title":"t","default":"y","examples":["z"]}`, `{"type":"string"}`, ""},
		{none, `{"type":"object","additionalProperties":false}`, `{"type":"object","properties":{},"required":[],"additionalProperties":false}`, ""},
		{all, `{"type":"object","additionalProperties":{"type":"string"}}`, `{"anyOf":[{"type":"object","additionalProperties":{"type":"string"}},{"type":"null"}]}`, ""},
		{none, `{"type":"object","additionalProperties":{"type":"string"}}`, "", "a: an object of free names cannot be enforced"},
		{none, `{"type":"object"}`, "", "a: an object of free names cannot be enforced"},
		{none, `{"type":"array"}`, "", "a: a list of values of any kind cannot be enforced"},
		{none, `{}`, "", "a: a value of any kind cannot be enforced"},
		{none, `{"type":"array","items":{"properties":{"b":true}}}`, "", "a[*].b: a value of any kind cannot be enforced"},
		{none, `{"allOf":[{"type":"string"},{"minLength":1}]}`, "", "a: allOf cannot be enforced"},
		{none, `{"type":"object","properties":{},"anyOf":[{"required":["x"]}]}`, "", "a: anyOf beside properties cannot be enforced"},
		{none, `{"properties":{"b":{"type":"string"}},"required":["c"]}`, "", `a: the required property "c" without a schema cannot be enforced`},
		{none, `{"$ref":"#"}`, "", "a: a value that contains values of its own kind cannot be enforced"},
		{none, `{"$ref":"#/properties/nowhere"}`, "", `a: the reference "#/properties/nowhere" cannot be enforced`},
		{none, `{"type":"string","enum":[1]}`, "", "a: an enum without a value of the type cannot be enforced"},
	} {
		got, err := test.subset.Project([]byte(object + test.schema + `}}`))
		want := `{"type":"object","properties":{"a":` + test.want + `},"required":[],"additionalProperties":false}`
		if test.subset == all {
			want = strings.Replace(want, `"required":[]`, `"required":["a"]`, 1)
		}
		if test.fail == "" && (err != nil || string(got) != want) || test.fail != "" && (err == nil || err.Error() != "schema: "+test.fail) {
			t.Errorf("%s:\n got %s, %v\nwant %s%s", test.schema, got, err, want, test.fail)
		}
	}
}

// TestProjectDefinitions checks references: to definitions, at the top, and in a circle.
func TestProjectDefinitions(t *testing.T) {
	optional := &schema.Subset{Cycles: "optional", Accepts: none.Accepts}
	const tree = `{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/definitions/a~1b"}},"x":{"$ref":"#/$defs/s"}},"required":["x"%s]}`
	for _, test := range []struct {
		subset       *schema.Subset
		schema, want string
	}{
		{optional, `{"$ref":"#/definitions/a~1b","$defs":{"s":{"type":"string"}},"definitions":{"a/b":` + fmt.Sprintf(tree, "") + `}}`,
			`{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/a_1b"}},"x":{"$ref":"#/$defs/s"}},"required":["x"],"additionalProperties":false,` +
				`"$defs":{"a_1b":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/a_1b"}},"x":{"$ref":"#/$defs/s"}},"required":["x"],"additionalProperties":false},"s":{"type":"string"}}}`},
		{optional, `{"$ref":"#/definitions/a~1b","$defs":{"s":{"type":"string"}},"definitions":{"a/b":` + fmt.Sprintf(tree, `,"kids"`) + `}}`, ""},
		{none, `{"properties":{"a":{"$ref":"#/$defs/s","description":"d"},"b":{"$ref":"#/definitions/s"}},"$defs":{"s":{"type":"string"}},"definitions":{"s":{"type":"boolean"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/s"},"b":{"$ref":"#/$defs/s2"}},"required":[],"additionalProperties":false,"$defs":{"s":{"type":"string"},"s2":{"type":"boolean"}}}`},
		{none, `{"$ref":"#"}`, ""},
		{none, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, ""},
		{none, `{"type":"array","items":{"type":"string"}}`, ""},
		{none, `true`, ""},
		{none, `{`, ""},
		{none, `{"properties":{"a":{"$id":"http://x/y","type":"string"}}}`, ""},
	} {
		got, err := test.subset.Project([]byte(test.schema))
		if string(got) != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s:\n got %s, %v\nwant %s", test.schema, got, err, test.want)
		}
	}
}

func TestProjectLimits(t *testing.T) {
	const text = `{"properties":{"aa":{"type":"array","items":{"properties":{"b":{"enum":["x","yy"]}}}},"c":{"type":["string","integer"]}},"required":["c"]}`
	size := schema.SubsetLimits{Depth: 3, Properties: 3, Optional: 2, Unions: 1, Values: 2, Text: 7}
	project := func(max schema.SubsetLimits) error {
		_, err := (&schema.Subset{Accepts: none.Accepts, Max: max}).Project([]byte(text))
		return err
	}
	if err := project(size); err != nil {
		t.Error(err)
	}
	for i, want := range []string{"3 levels", "3 properties", "2 optional", "1 values of several types", "2 values in its enums", "7 bytes"} {
		less := size
		*[]*int{&less.Depth, &less.Properties, &less.Optional, &less.Unions, &less.Values, &less.Text}[i]--
		if err := project(less); i == 3 && err != nil || i != 3 && (err == nil || !strings.Contains(err.Error(), want)) { // 0 is unlimited
			t.Errorf("got %v, want %s", err, want)
		}
	}
	long := `{"properties":{"a":{"enum":["` + strings.Join(slices.Repeat([]string{"x"}, 251), `","`) + `"]}}}`
	if _, err := (&schema.Subset{Accepts: none.Accepts, Max: schema.SubsetLimits{LongEnum: 250}}).Project([]byte(long)); err == nil {
		t.Error("an enum of 251 bytes is accepted")
	}
	if _, err := none.Project([]byte(`"` + strings.Repeat("x", 512<<10) + `"`)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("got %v", err)
	}
}

// TestEncode: what a service cannot enforce is asked for in another form, and comes back.
func TestEncode(t *testing.T) {
	strict := &schema.Subset{
		AllRequired: true, Encode: true, Accepts: func(string, any) bool { return true },
		Name: func(name string) bool { return !strings.ContainsAny(name, " ü") && len(name) < 64 },
	}
	for _, c := range []struct{ name, schema, projected, answer, want string }{
		{"a map", `{"type":"object","additionalProperties":{"type":"integer"}}`,
			`{"type":"array","items":{"type":"object","properties":{"key":{"type":"string"},"value":{"type":"integer"}},"required":["key","value"],"additionalProperties":false},"description":"The members of an object, each name once."}`,
			`[{"key":"b","value":1},{"key":"a","value":2}]`, `{"b":1,"a":2}`},
		{"an empty map", `{"type":"object","additionalProperties":{"type":"integer"}}`, "", `[]`, `{}`},
		{"a map with a name twice", `{"type":"object","additionalProperties":{"type":"integer"}}`, "", `[{"key":"a","value":1},{"key":"a","value":2}]`, `[{"key":"a","value":1},{"key":"a","value":2}]`},
		{"maps of maps", `{"type":"object","additionalProperties":{"type":"object","additionalProperties":{"type":"integer"}}}`, "", `[{"key":"0","value":[{"key":"1","value":1}]}]`, `{"0":{"1":1}}`},
		{"a list that looks like a map", `{"type":"array","minItems":2,"items":{"type":"object"}}`, "", `[{"key":"a","value":1}]`, `[{"key":"a","value":1}]`},
		{"any value", `{}`, `{"type":"object","properties":{"json":{"type":"string","description":"JSON text of the value."}},"required":["json"],"additionalProperties":false}`,
			`{"json":"{\"a\":[1,\"x\"]}"}`, `{"a":[1,"x"]}`},
		{"any value, a text", `{}`, "", `{"json":"\"1\""}`, `"1"`},
		{"any value that is no JSON", `{}`, "", `{"json":"{"}`, `{"json":"{"}`},
		{"any object", `{"type":"object"}`, `{"type":"string","description":"JSON text of the value, which fits {\"type\":\"object\"}."}`, `"{\"a\":1}"`, `{"a":1}`},
		{"its own kind", `{"$ref":"#/$defs/list"}`, `{"$ref":"#/$defs/list"}`, `{"next":"{\"next\":{\"next\":null}}"}`, `{"next":{"next":{"next":null}}}`},
		{"a text stays one", `{"type":"string","enum":["1","2"]}`, "", `"3"`, `"3"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := `{"type":"object","properties":{"v":` + c.schema + `},"required":["v"],"$defs":{"list":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/list"},{"type":"null"}]}},"required":["next"]}}}`
			projected, err := strict.Project([]byte(whole))
			if err != nil {
				t.Fatal(err)
			}
			if c.projected != "" && !strings.Contains(string(projected), `"v":`+c.projected) {
				t.Errorf("projected to %s, want %s", projected, c.projected)
			}
			if got := string(parse(t, whole).Restore(t.Context(), []byte(`{"v":`+c.answer+`}`))); got != `{"v":`+c.want+`}` {
				t.Errorf("%s is %s, want %s", c.answer, got, c.want)
			}
		})
	}
	names := `{"type":"object","properties":{"a b":{"type":"integer"},"a_b":{"type":"integer"},"aüb":{"type":"integer"},"` + strings.Repeat("x", 70) + `":{"type":"integer"}}}`
	projected, err := strict.Project([]byte(names))
	if err != nil {
		t.Fatal(err)
	}
	s := parse(t, names)
	var answer []string
	p := parse(t, string(projected)).Properties()
	for i, name := range p {
		answer = append(answer, fmt.Sprintf(`"%s":%d`, name, i))
	}
	restored := s.Restore(t.Context(), []byte("{"+strings.Join(answer, ",")+"}"))
	var members map[string]int
	if err := json.Unmarshal(restored, &members); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(members)); len(p) != 4 || !slices.Equal(got, s.Properties()) {
		t.Errorf("the names are %q, and %q again", p, got)
	}
}

func TestRestoreNulls(t *testing.T) {
	s := parse(t, `{"properties":{"a":{"type":"string"},"n":{"type":["null","string"]},"list":{"type":"array","items":{"$ref":"#"}}}}`)
	for in, want := range map[string]string{
		`{"a":null,"n":null,"x":null}`:           `{"n":null,"x":null}`,
		`{"list":[{"a":null},null,{"a":"1.0"}]}`: `{"list":[{},null,{"a":"1.0"}]}`,
		`{"a":1e400,"n":"<"}`:                    `{"a":1e400,"n":"<"}`,
		`null`:                                   `null`,
		`{"a":`:                                  `{"a":`,
	} {
		if got := string(s.Restore(t.Context(), []byte(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
