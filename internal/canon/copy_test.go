package canon

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/jsonv2"
	"pgregory.net/rapid"
)

// roundTrip is the slow copy: the JSON of the variable at v, read again.
func roundTrip(v reflect.Value) (reflect.Value, error) {
	back := reflect.New(v.Type().Elem())
	e, err := Addressable(v.Type().Elem())
	if err != nil {
		return back, err
	}
	text, err := e.Append(nil, v.UnsafePointer())
	if err == nil {
		err = jsonv2.UnmarshalV1(text, back.Interface())
	}
	return back, err
}

// checkCopy fails if a copy differs from a round trip, and reports whether there is one.
func checkCopy(t rapid.TB, v reflect.Value) bool {
	t.Helper()
	got := reflect.New(v.Type().Elem())
	if !copierOf(v.Type().Elem())(got.UnsafePointer(), v.UnsafePointer(), 0) {
		return false
	}
	want, err := roundTrip(v)
	if err != nil || !reflect.DeepEqual(got.Interface(), want.Interface()) {
		t.Fatalf("%T:\n copy %#v\nround trip %#v, %v", v.Interface(), got.Elem(), want.Elem(), err)
	}
	return true
}

func checkAnyCopy(t *rapid.T) {
	v := reflect.New(drawType(t, 3, leaves))
	fill(t, v.Elem(), 2)
	checkCopy(t, v)
}

func TestCopyIsRoundTrip(t *testing.T) { rapid.Check(t, checkAnyCopy) }

func FuzzCopyIsRoundTrip(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkAnyCopy)) }

type copyTree struct {
	Name  string               `json:"name"`
	Below []*copyTree          `json:"below,omitempty"`
	By    map[string]*copyTree `json:"by,omitempty"`
}

// sample is a value of each kind that has a copy.
func sample() *copySample {
	return &copySample{
		Text: "tëxt\n", Number: -3, Float: 0.1, Single: 0.1, Yes: true, Raw: json.RawMessage(`{"a":[1,2]}`), Bytes: []byte{1},
		List: []string{"x"}, None: []int{}, Pair: [2]int8{1, 2}, Point: new(5), By: map[string][]int{"k": {1}, "z": nil},
		Tree: copyTree{Name: "a", Below: []*copyTree{{Name: "b"}, nil}, By: map[string]*copyTree{"c": {}}},
	}
}

type copySample struct {
	Text   string
	Number int
	Float  float64
	Single float32
	Yes    bool
	Raw    json.RawMessage
	Bytes  []byte
	List   []string
	None   []int
	Nil    []int
	Pair   [2]int8
	Point  *int
	By     map[string][]int
	Tree   copyTree
	Any    any
	When   *time.Time      `json:",omitempty"`
	Beside json.RawMessage // nil is read back as null
	Left   string          `json:"-"`
	hidden int
}

func TestCopy(t *testing.T) {
	v := sample()
	v.Left, v.hidden = "left", 1
	if !checkCopy(t, reflect.ValueOf(v)) {
		t.Fatal("no copy")
	}
	var own copySample
	Copy(&own, v)
	v.Raw[1], v.Bytes[0], v.List[0], *v.Point, v.By["k"][0], v.Tree.Below[0].Name = 'x', 9, "y", 6, 2, "other"
	delete(v.By, "z")
	v.Tree.By["c"].Name = "other"
	want := sample()
	want.Beside = json.RawMessage("null")
	if !reflect.DeepEqual(&own, want) {
		t.Errorf("the copy changed with the value:\n got %+v\nwant %+v", own, want)
	}
}

func TestCopyNegativeZero(t *testing.T) {
	from := []float64{math.Copysign(0, -1)}
	var to []float64
	if !Copy(&to, &from) || math.Signbit(to[0]) {
		t.Errorf("got %v, want 0 without a sign", to)
	}
}

// TestNoCopy has values whose copy could differ from what their JSON gives.
func TestNoCopy(t *testing.T) {
	loop := &copyTree{}
	loop.Below = []*copyTree{loop, loop}
	var none *int
	for name, v := range map[string]any{
		"invalid UTF-8":            new("\xff"),
		"invalid key":              &map[string]int{"\xff": 1},
		"NaN":                      new(math.NaN()),
		"infinity":                 new(float32(math.Inf(1))),
		"raw with space":           new(json.RawMessage(`[1, 2]`)),
		"raw cut off":              new(json.RawMessage(`[1,`)),
		"raw empty":                &json.RawMessage{},
		"cycle":                    loop,
		"pointer to a nil pointer": new(&none),
		"pointer to a nil map":     new(new(map[string]int)),
		"number":                   new(json.Number("1")),
		"time":                     &time.Time{},
		"pointer to a time":        new(&time.Time{}),
		"any":                      new(any(1)),
		"marshaler":                &[]valueMarshaler{{}},
		"option string": &struct {
			N int `json:",string"`
		}{},
		"another option": &struct {
			N []int `json:",format:emitnull"`
		}{},
		"embedded pointer": &Other{},
		"no JSON": &struct {
			F func() `json:",omitempty"`
		}{},
		"other keys": &map[int]int{1: 1},
	} {
		if checkCopy(t, reflect.ValueOf(v)) {
			t.Errorf("%s: copied, want false", name)
		}
	}
}
