//lint:file-ignore SA5008 these tags are wrong on purpose
//lint:file-ignore U1000 the tests need fields that no code reads

package canon

import (
	"encoding"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"
)

type base struct {
	ID     int
	Name   string
	Shared string `json:"shared"`
}
type other struct {
	Name string
	Deep
}
type named struct {
	Name string `json:"Name"`
}
type Node struct {
	Name string
	Next *Node
	Kids []Node `json:",omitempty"`
}
type left struct{ Deep }
type right struct{ Deep }
type overLeft struct{ left }
type overLeft2 struct{ left }
type selfEmbedding struct {
	*selfEmbedding
	X int
}
type Wrapped struct{ time.Time }
type hiddenInt int

// sameTag has two fields with one tag, which vet rejects in the source.
var sameTag = reflect.Zero(reflect.StructOf([]reflect.StructField{
	{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
	{Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
	{Name: "Y", Type: reflect.TypeFor[int]()},
})).Interface()

// TestStructs tests the rules of encoding/json for struct fields that generated
// types do not reach: embedding and its precedence. The second column is compared
// with encoding/json too.
func TestStructs(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{struct {
			base
			Own bool
		}{base{1, "n", "s"}, true}, `{"ID":1,"Name":"n","Own":true,"shared":"s"}`},
		{struct {
			base
			other
		}{base{1, "n", "s"}, other{"m", Deep{2, 3}}}, `{"ID":1,"Only":3,"shared":"s"}`},
		{struct {
			base
			named
		}{base{1, "n", "s"}, named{"tagged"}}, `{"ID":1,"Name":"tagged","shared":"s"}`},
		{struct {
			base
			Name string
		}{base{1, "n", "s"}, "outer"}, `{"ID":1,"Name":"outer","shared":"s"}`},
		{struct {
			left
			right
		}{}, `{}`},
		{struct {
			overLeft
			overLeft2
		}{overLeft{left{Deep{1, 2}}}, overLeft2{}}, `{"ID":1,"Only":2}`}, // ambiguous in Go, but encoding/json takes the first
		{struct {
			*base
			X int
		}{nil, 1}, `{"X":1}`},
		{struct {
			*base
			X int
		}{&base{ID: 1}, 1}, `{"ID":1,"Name":"","X":1,"shared":""}`},
		{struct {
			base `json:"b"`
		}{}, `{"b":{"ID":0,"Name":"","shared":""}}`},
		{struct {
			hiddenInt
			*hiddenPointer
		}{}, `{}`},
		{selfEmbedding{X: 1}, `{"X":1}`},
		{Wrapped{time.Unix(0, 0).UTC()}, `"1970-01-01T00:00:00Z"`},
		{sameTag, `{"Y":0}`},
		{struct {
			P **int `json:",string"`
			Q *int  `json:",string"`
		}{Q: new(5)}, `{"P":null,"Q":"5"}`},
		{struct {
			F float64     `json:",string"`
			S string      `json:",string"`
			N json.Number `json:",string"`
		}{math.Copysign(0, -1), "a\u2028\"", "1e400"}, `{"F":"-0","N":"1e400","S":"\"a\\u2028\\\"\""}`},
		{map[encoding.TextMarshaler]int{valueText{2}: 1, textKey(1): 2}, `{"k1":2,"v<2>":1}`},
		{map[*pointerText]int{nil: 1, {3}: 2}, `{"":1,"p\"3":2}`},
		{map[string]any{"\U0001F600": 1, "\ufb33": 2, "\u20ac": nil}, "{\"€\":null,\"😀\":1,\"\ufb33\":2}"},
		{[]any{1, uint8(2), float32(0.1), &Node{Name: "x"}, map[string]int(nil), []int(nil), []byte("hi"), nil},
			`[1,2,0.1,{"Name":"x","Next":null},null,null,"aGk=",null]`},
		{Node{"a", &Node{"b", nil, nil}, []Node{{"c", nil, nil}}},
			`{"Kids":[{"Name":"c","Next":null}],"Name":"a","Next":{"Name":"b","Next":null}}`},
		{struct{ A [1]*int }{[1]*int{new(7)}}, `{"A":[7]}`},
		{[]pointerMarshaler{{1}}, `["p1"]`},
		{[1]pointerMarshaler{{1}}, `[{"N":1}]`},
		{map[string]pointerMarshaler{"a": {1}}, `{"a":{"N":1}}`},
	} {
		got, err := Append(nil, c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("%T:\n got %s, %v\nwant %s", c.v, got, err, c.want)
		}
		agree(t, c.v)
	}
}

type hiddenPointer int
type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("at the disco") }

type panickingZero struct{}

func (panickingZero) IsZero() bool { panic("no zero") }

func TestRefuses(t *testing.T) {
	type line struct {
		Price float64 `json:"price"`
	}
	type Pointer *Pointer
	var loop Pointer
	loop = &loop
	var self any
	self = &self
	ring := &Node{Name: strings.Repeat("x", 1<<20)}
	ring.Next = ring
	slice := []any{0, nil}
	slice[1] = slice
	object := map[string]any{}
	object["again"] = object
	deepKey := "…"
	for _, c := range []struct {
		name string
		v    any
		want []string // parts of the message, in their order
	}{
		{"NaN", map[string]any{"items": []line{{}, {math.NaN()}}}, []string{"JSON: items[1].price: NaN is not a JSON number"}},
		{"root", math.Inf(-1), []string{"JSON: -Inf is not a JSON number"}},
		{"UTF-8", struct{ S string }{"\xff"}, []string{"S: the string is not valid UTF-8: put bytes"}},
		{"UTF-8 in a key", map[string]int{"a\xff": 1}, []string{`["a\xff"]: the string is not valid UTF-8`}},
		{"UTF-8 in a text", textString("\xff"), []string{"the string is not valid UTF-8"}},
		{"key clash", struct{ M map[clashingKey]int }{map[clashingKey]int{1: 1, 3: 3}}, []string{`M: two keys of the map have the text "1"`}},
		{"raw", struct{ R json.RawMessage }{json.RawMessage(`{"x":[1e400]}`)}, []string{"R.x[0]: 1e400 is beyond"}},
		{"number", json.Number("1x"), []string{`"1x" is not a JSON number`}},
		{"failing", []failing{{true}}, []string{"[0]: MarshalJSON of canon.failing: told to fail"}},
		{"panic", []any{panicking{}}, []string{"[0]: MarshalJSON of canon.panicking: it panicked: at the disco"}},
		{"panic in IsZero", struct {
			Z panickingZero `json:",omitzero"`
		}{}, []string{"Z: IsZero: it panicked: no zero"}},
		{"chan in any", []any{make(chan int)}, []string{"[0]: JSON cannot represent a Go chan int"}},
		{"pointer loop", loop, []string{"cycle: canon.Pointer contains itself"}},
		{"any loop", self, []string{"cycle: *interface {} contains itself"}},
		{"ring", ring, []string{"Next.Next", deepKey, "Next: cycle: *canon.Node contains itself"}},
		{"slice loop", slice, []string{"[1][1]", deepKey, "cycle: []interface {} contains itself"}},
		{"map loop", object, []string{"again.again", deepKey, "cycle: map[string]interface {} contains itself"}},
	} {
		dst, err := Append([]byte("x"), c.v)
		var e *Error
		if !errors.As(err, &e) || string(dst) != "x" {
			t.Errorf("%s: %v with dst of %d bytes", c.name, err, len(dst))
			continue
		}
		rest := err.Error()
		for _, part := range c.want {
			_, after, ok := strings.Cut(rest, part)
			if !ok {
				t.Errorf("%s: %q lacks %q", c.name, err, part)
			}
			rest = after
		}
		if len(err.Error()) > 500 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: not a short line: %q", c.name, err)
		}
	}
}

func TestForRefuses(t *testing.T) {
	for _, c := range []struct{ v, want any }{
		{struct {
			Items []struct{ Done chan int }
		}{}, "cannot be canonical JSON: Items[].Done: JSON cannot represent a Go chan int: leave the field out with the tag `json:\"-\"` or give the type a MarshalJSON method"},
		{struct {
			F func() `json:"f"`
		}{}, "cannot be canonical JSON: f: JSON cannot represent a Go func(): leave the field out with the tag `json:\"-\"` or give the type a MarshalJSON method"},
		{map[string]complex128{}, "cannot be canonical JSON: []: JSON cannot represent a Go complex128: leave the field out with the tag `json:\"-\"` or give the type a MarshalJSON method"},
		{struct{ M map[float64]int }{}, "cannot be canonical JSON: M: JSON cannot represent a Go map with keys of type float64: use strings, integers or an encoding.TextMarshaler"},
		{unsafe.Pointer(nil), "cannot be canonical JSON: JSON cannot represent a Go unsafe.Pointer: leave the field out with the tag `json:\"-\"` or give the type a MarshalJSON method"},
	} {
		if _, err := For(reflect.TypeOf(c.v)); err == nil || err.Error() != c.want {
			t.Errorf("%T:\n got %v\nwant %s", c.v, err, c.want)
		}
	}
	if _, err := For(nil); err == nil {
		t.Error("no type was accepted")
	}
	e, _ := For(reflect.TypeFor[int]())
	if _, err := e.Append(nil, nil); err == nil {
		t.Error("a nil pointer was accepted")
	}
}

// TestDepth checks that AppendJSON can read everything that is written: both count
// the depth alike, also across values that write their own text.
func TestDepth(t *testing.T) {
	list := func(n int) *Node {
		var head *Node
		for range n {
			head = &Node{Next: head}
		}
		return head
	}
	type holder struct{ R json.RawMessage }
	raw := func(n int) json.RawMessage {
		return json.RawMessage(strings.Repeat("[", n) + strings.Repeat("]", n))
	}
	type Pointer *Pointer
	chain := func(n int) (p Pointer) {
		for range n {
			p = Pointer(new(p))
		}
		return p
	}
	for _, c := range []struct {
		name string
		v    any
		ok   bool
	}{
		{"list", list(maxDepth), true},
		{"list beyond", list(maxDepth + 1), false},
		{"list far beyond", list(1_000_000), false},
		{"raw", holder{raw(maxDepth - 1)}, true},
		{"raw beyond", holder{raw(maxDepth)}, false},
		{"pointers", chain(maxDepth), true},
		{"pointers far beyond", chain(1_000_000), false},
	} {
		text, err := Append(nil, c.v)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			if _, err := AppendJSON(nil, text); err != nil {
				t.Errorf("%s: cannot be read: %v", c.name, err)
			}
		} else if len(err.Error()) > 500 {
			t.Errorf("%s: a message of %d bytes", c.name, len(err.Error()))
		}
	}
	// A value that refers to one thing several times is not a cycle, however deep.
	shared := list(100)
	agree(t, []any{shared, shared, []any{shared, list(200)}})
}

// TestPrefixIsNoCycle checks that a shorter slice in its own backing array is not a cycle.
func TestPrefixIsNoCycle(t *testing.T) {
	var v any = "leaf"
	for range 2 * freeHops {
		v = []any{v}
	}
	a := []any{1, v, nil}
	a[2] = a[:2]
	agree(t, a)
	nested := a
	for range 2 * freeHops {
		nested = []any{nested}
	}
	agree(t, nested)
}

func TestFlat(t *testing.T) {
	type flat struct {
		A int `json:"a,omitempty"`
		B [2]struct {
			C string `json:",omitzero"`
			D uint8
		}
		E time.Duration
		F struct{}
	}
	for _, c := range []struct {
		v    any
		want bool
	}{
		{flat{}, true},
		{1, true},
		{"s", true},
		{1.5, false},
		{json.Number(""), false},
		{[]int{}, false},
		{new(1), false},
		{map[string]int{}, false},
		{time.Time{}, false},
		{textString(""), false},
		{pointerMarshaler{}, false},
		{json.RawMessage{}, false},
		{[1]any{}, false},
		{struct{ a int }{}, false},
		{struct {
			A int `json:"-"`
		}{}, false},
		{struct {
			A int `json:"-,"`
		}{}, true},
		{struct {
			A int `json:",string"`
		}{}, false},
		{sameTag, false},
		{struct{ Deep }{}, false},
		{struct {
			Z evenZero `json:",omitzero"`
		}{}, false},
		{struct{ Z evenZero }{}, true},
	} {
		e, err := For(reflect.TypeOf(c.v))
		if err != nil || e.Flat() != c.want {
			t.Errorf("%T: got %v, want %v", c.v, e != nil && e.Flat(), c.want)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	type fresh struct { // first compiled by all at once
		Kids []fresh
		Any  any
	}
	v := fresh{Kids: []fresh{{Any: 1}}, Any: map[string]fresh{"a": {}}}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				agree(t, v)
			}
		})
	}
	group.Wait()
}

func TestNoAllocation(t *testing.T) {
	e, err := For(reflect.TypeFor[small]())
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { dst, _ = e.Append(dst[:0], unsafe.Pointer(&smallValue)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
