//lint:file-ignore SA5008 these tags are wrong on purpose

package schema_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/schema"
)

type color string

func (color) Enum() []any { return []any{"red", "green"} }

type level int

func (*level) Enum() []any                    { return []any{level(1), level(2)} }
func (l level) MarshalText() ([]byte, error)  { return []byte{'L', '0' + byte(l)}, nil }
func (l *level) UnmarshalText(b []byte) error { *l = level(b[1] - '0'); return nil }

type opaque struct{ n int }

func (o opaque) MarshalJSON() ([]byte, error) { return json.Marshal([]int{o.n}) }

type addressed struct{ N int }

func (*addressed) MarshalText() ([]byte, error) { return []byte("text"), nil }

type tree struct {
	Value    int             `json:"value"`
	Children []tree          `json:"children,omitempty"`
	Parent   *tree           `json:"parent"`
	ByName   map[string]tree `json:"byName,omitempty"`
}

type left struct {
	Right *right `json:"right"`
}
type right struct {
	Left *left `json:"left"`
}
type list []list

type pair struct {
	Tree tree
	Left left
}

type base struct {
	ID   string `json:"id"`
	Note string `json:"note"`
}
type other struct {
	Note string `json:"note"`
	Only int    `json:"only"`
}
type embedding struct {
	base
	*other
	ID int `json:"id"`
}

type hasColor struct {
	color
	N int
}

func TestForType(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{true, `{"type":"boolean"}`},
		{int(0), `{"type":"integer"}`},
		{int64(0), `{"type":"integer"}`},
		{uint64(0), `{"minimum":0,"type":"integer"}`},
		{int8(0), `{"maximum":127,"minimum":-128,"type":"integer"}`},
		{uint32(0), `{"maximum":4294967295,"minimum":0,"type":"integer"}`},
		{float32(0), `{"type":"number"}`},
		{"", `{"type":"string"}`},
		{json.Number(""), `{"type":"number"}`},
		{json.RawMessage{}, `{}`},
		{[]byte{}, `{"contentEncoding":"base64","type":["null","string"]}`},
		{[2]byte{}, `{"items":{"maximum":255,"minimum":0,"type":"integer"},"maxItems":2,"minItems":2,"type":"array"}`},
		{[]string{}, `{"items":{"type":"string"},"type":["null","array"]}`},
		{[]*int{}, `{"items":{"type":["null","integer"]},"type":["null","array"]}`},
		{map[string]bool{}, `{"additionalProperties":{"type":"boolean"},"type":["null","object"]}`},
		{map[int]any{}, `{"additionalProperties":{},"type":["null","object"]}`},
		{map[netip.Addr]any{}, `{"additionalProperties":{},"type":["null","object"]}`},
		{time.Time{}, `{"format":"date-time","type":"string"}`},
		{time.Second, `{"type":"integer"}`},
		{slog.LevelInfo, `{"type":"string"}`},
		{netip.Addr{}, `{"type":"string"}`},
		{&big.Int{}, `{"type":["null","integer"]}`},
		{[]big.Int{}, `{"items":{"type":"integer"},"type":["null","array"]}`},
		{big.Int{}, `{}`},
		{&big.Float{}, `{"type":["null","string"]}`},
		{opaque{}, `{}`},
		{addressed{}, `{}`},
		{&addressed{}, `{"type":["null","string"]}`},
		{color(""), `{"enum":["red","green"],"type":"string"}`},
		{[]*color{}, `{"items":{"enum":["red","green",null],"type":["null","string"]},"type":["null","array"]}`},
		{level(0), `{"enum":["L1","L2"],"type":"string"}`},
		{hasColor{}, `{"properties":{"N":{"type":"integer"}},"required":["N"],"type":"object"}`},
		{struct{}{}, `{"properties":{},"type":"object"}`},
		{struct {
			A int    `json:"a,omitempty" jsonschema:"how many"`
			B string `enum:"x, y"`
			C *int   `json:",string"`
			D string `json:"-"`
			E string `json:"-,"`
			f int
		}{}, `{"properties":{` +
			`"-":{"type":"string"},` +
			`"B":{"enum":["x","y"],"type":"string"},` +
			`"C":{"type":["null","string"]},` +
			`"a":{"description":"how many","type":"integer"}},` +
			`"required":["B","C","-"],"type":"object"}`},
		{struct {
			P *string `enum:"x"`
		}{}, `{"properties":{"P":{"enum":["x",null],"type":["null","string"]}},"required":["P"],"type":"object"}`},
		{embedding{}, `{"properties":{"id":{"type":"integer"},"only":{"type":"integer"}},"required":["id"],"type":"object"}`},
		{tree{}, `{"properties":{` +
			`"byName":{"additionalProperties":{"$ref":"#"},"type":["null","object"]},` +
			`"children":{"items":{"$ref":"#"},"type":["null","array"]},` +
			`"parent":{"anyOf":[{"$ref":"#"},{"type":"null"}]},` +
			`"value":{"type":"integer"}},"required":["value","parent"],"type":"object"}`},
		{list{}, `{"items":{"$ref":"#"},"type":["null","array"]}`},
		{&left{}, `{"$defs":{"left":{"properties":{"right":` +
			`{"properties":{"left":{"anyOf":[{"$ref":"#/$defs/left"},{"type":"null"}]}},"required":["left"],"type":["null","object"]}` +
			`},"required":["right"],"type":"object"}},"anyOf":[{"$ref":"#/$defs/left"},{"type":"null"}]}`},
	} {
		s, err := schema.ForType(reflect.TypeOf(test.value))
		if err != nil {
			t.Errorf("%T: %v", test.value, err)
		} else if s.String() != test.want {
			t.Errorf("%T:\n got %s\nwant %s", test.value, s, test.want)
		}
	}
}

func TestForTypeAny(t *testing.T) {
	s, err := schema.For[any]()
	if err != nil || s.String() != "{}" {
		t.Errorf("For[any]: %v, %v", s, err)
	}
	if s, err := schema.ForType(nil); s != nil || err != nil {
		t.Errorf("ForType(nil): %v, %v", s, err)
	}
}

func TestForIsCached(t *testing.T) {
	a, _ := schema.For[pair]()
	b, _ := schema.ForType(reflect.TypeFor[pair]())
	if a != b {
		t.Error("two pointers for one type")
	}
}

type panics struct{}

func (panics) Enum() []any { panic("no values today") }

type loop *loop

//lint:ignore U1000 the test needs fields that JSON ignores
type hidden struct{ name, text string }

// sameTag is a struct that go vet would reject.
var sameTag = reflect.Zero(reflect.StructOf([]reflect.StructField{
	{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
	{Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
})).Interface()

// nothingLost are types that omit fields from JSON on purpose.
type nothingLost struct {
	_     struct{}
	Keeps int
	//lint:ignore U1000 the test needs a field that JSON ignores
	cache map[string]int
	Own   opaque
	None  struct{}
	Left  struct {
		Out chan int `json:"-"`
	}
	Any any
}

func TestForTypeKeepsData(t *testing.T) {
	if _, err := schema.For[nothingLost](); err != nil {
		t.Error(err)
	}
}

type empty string

func (empty) Enum() []any { return nil }

func TestForTypeErrors(t *testing.T) {
	type inner struct{ Bad []chan int }
	for _, test := range []struct {
		value any
		want  string // in the message
	}{
		{struct{ In map[string]inner }{}, ".In[*].Bad[*]: no schema describes a chan int"},
		{func() {}, "no schema describes a func()"},
		{map[float64]int{}, "keys of type float64"},
		{struct{ C complex128 }{}, ".C: no schema describes a complex128"},
		{struct {
			N int `enum:"1"`
		}{}, `.N: the tag enum:"1" needs a string field`},
		{struct {
			N int `jsonschema:"minimum=1"`
		}{}, `.N: the tag jsonschema:"minimum=1" needs a description`},
		{struct {
			N string `jsonschema:"enum=a,enum=b"`
		}{}, `a list of values is the tag enum:"a,b"`},
		{struct {
			N int `enum:"1"`
		}{}, "lists its values in a method Enum() []any"},
		{struct{ name string }{}, "none is exported; write \"name\" with a capital letter"},
		{struct{ In []hidden }{}, ".In[*]: no field of schema_test.hidden is in its JSON"},
		{struct{ hidden }{}, "none is exported"},
		{sameTag, `the fields A and B are both "x" in JSON`},
		{struct{ Err error }{}, ".Err: JSON cannot be read back into the interface error; use a string with its message"},
		{struct{ R map[string]io.Reader }{}, ".R[*]: JSON cannot be read back into the interface io.Reader; use a type that can be made"},
		{panics{}, "Enum of a zero schema_test.panics panics: no values today"},
		{empty(""), "Enum of schema_test.empty lists no value"},
		{loop(nil), "points only to itself"},
	} {
		_, err := schema.ForType(reflect.TypeOf(test.value))
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%T: got %v, want an error with %q", test.value, err, test.want)
		}
	}
}

// level1, level2 … embed one struct twice at different depths, where Go's rules are least obvious.
type deepest struct{ F, G int }
type deep struct{ deepest }
type deepA struct{ deep }
type deepB struct{ deep }
type twice struct {
	deepA
	deepB
}
type tagged struct {
	F int `json:"G"`
}
type taggedWins struct {
	tagged
	deepest
}
type Exported struct{ X int }
type asField struct {
	Exported `json:"renamed"`
	*deepest
	time.Duration
	fromInterface
}
type fromInterface interface{ M() }

// TestFields compares the properties with the names that encoding/json writes.
func TestFields(t *testing.T) {
	for _, value := range []any{
		embedding{other: &other{}}, twice{}, taggedWins{}, hasColor{},
		asField{deepest: &deepest{}}, struct{ *embedding }{&embedding{other: &other{}}},
		struct {
			A int `json:"bad\"name"`
			B int `json:"ünicode,omitempty"`
			C int `json:"with space"`
		}{B: 1},
	} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var written map[string]any
		if err := json.Unmarshal(text, &written); err != nil {
			t.Fatal(err)
		}
		s, err := schema.ForType(reflect.TypeOf(value))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range s.Properties() {
			if _, ok := written[name]; !ok {
				t.Errorf("%T: property %q is never written: %s", value, name, text)
			}
			delete(written, name)
		}
		for name := range written {
			t.Errorf("%T: %q is written, but no property", value, name)
		}
	}
}
