package schema_test

import (
	"context"
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/stonelayer/stone/schema"
	"pgregory.net/rapid"
)

type everything struct {
	Bool    bool
	Int     int64
	Uint    uint64
	Small   int8
	Float   float64
	Float32 float32
	Text    string
	Bytes   []byte
	Fixed   [3]uint16
	Number  json.Number
	Raw     json.RawMessage
	Big     *big.Int
	BigText *big.Float
	Time    time.Time
	Times   []*time.Time `json:"times,omitempty"`
	Any     any
	Color   color
	Level   *level
	Tag     string  `enum:"a,b,c" json:"tag"`
	Quoted  *int32  `json:",string,omitempty"`
	Pointer **uint8 `json:"pointer"`
	Map     map[string]*everything
	Ints    map[int8][]string
	Opaque  opaque
	Addr    addressed
	Addrs   []addressed
	Anon    struct {
		X, Y *float32
	}
	embedding
	*tree
}

// fill draws a value of any type.
func fill(t *rapid.T, v reflect.Value, depth int) {
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(-6e10, 2e11).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()))
		return
	case reflect.TypeFor[big.Int]():
		v.Addr().Interface().(*big.Int).SetString(rapid.StringMatching(`-?[1-9][0-9]{0,60}`).Draw(t, "big"), 10)
		return
	case reflect.TypeFor[big.Float]():
		v.Addr().Interface().(*big.Float).SetFloat64(rapid.Float64Range(-1e300, 1e300).Draw(t, "big"))
		return
	case reflect.TypeFor[json.Number]():
		v.SetString(rapid.SampledFrom([]string{"", "0", "-1.5e10", "123456789012345678901234567890"}).Draw(t, "number"))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(rapid.SampledFrom([]string{"null", "[1]", `{"a":null}`}).Draw(t, "raw")))
		return
	case reflect.TypeFor[color]():
		v.SetString(rapid.SampledFrom([]string{"red", "green"}).Draw(t, "color"))
		return
	case reflect.TypeFor[level]():
		v.SetInt(rapid.Int64Range(1, 2).Draw(t, "level"))
		return
	case reflect.TypeFor[opaque](), reflect.TypeFor[addressed]():
		return
	}
	few := func() int {
		if depth <= 0 {
			return 0
		}
		return rapid.IntRange(0, 2).Draw(t, "n")
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		limit := int64(math.MaxInt64) >> (64 - v.Type().Bits())
		v.SetInt(rapid.Int64Range(-limit-1, limit).Draw(t, "int"))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Range(0, math.MaxUint64>>(64-v.Type().Bits())).Draw(t, "uint"))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(rapid.Float64Range(-math.MaxFloat32, math.MaxFloat32).Draw(t, "float"))
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "string"))
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*big.Int]() || few() > 0 {
			if v.CanSet() {
				v.Set(reflect.New(v.Type().Elem()))
				fill(t, v.Elem(), depth-1)
			}
		}
	case reflect.Slice:
		if n := few(); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			fill(t, v.Index(i), depth-1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), depth)
		}
	case reflect.Map:
		for range few() {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, depth-1)
			fill(t, value, depth-1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Tag.Get("enum") != "" {
				v.Field(i).SetString(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "enum"))
			} else if v.Field(i).CanSet() {
				fill(t, v.Field(i), depth)
			}
		}
	}
}

// places calls f with every path of a decoded value.
func places(v any, path []string, f func(path []string, v any)) {
	f(path, v)
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			places(below, append(path[:len(path):len(path)], name), f)
		}
	case []any:
		for i, below := range v {
			places(below, append(path[:len(path):len(path)], strconv.Itoa(i)), f)
		}
	}
}

var varied = []any{
	everything{}, tree{}, list{}, pair{}, &left{}, embedding{}, map[string][]tree{}, []any{}, [2]*pair{},
	struct {
		A, B *everything
		C    []color `json:",omitempty"`
	}{},
}

// TestOwnValues draws values of many types: what encoding/json writes must fit the type's schema,
// every place in it must exist for At and fit what At returns.
func TestOwnValues(t *testing.T) {
	for _, sample := range varied {
		typ := reflect.TypeOf(sample)
		s, err := schema.ForType(typ)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			v := reflect.New(typ)
			fill(t, v.Elem(), 2)
			for _, value := range []any{v.Interface(), v.Elem().Interface()} {
				text, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Validate(context.Background(), text); err != nil {
					t.Fatalf("%s\ndoes not fit its own schema %s\n%s", text, s, err.(*schema.ValidationError).Detail())
				}
				var decoded any
				if err := json.Unmarshal(text, &decoded); err != nil {
					t.Fatal(err)
				}
				places(decoded, nil, func(path []string, v any) {
					below, ok := s.At(path...)
					text, _ := json.Marshal(v)
					if !ok {
						t.Fatalf("At(%q) does not exist in %s", path, s)
					}
					if err := below.Validate(context.Background(), text); err != nil {
						t.Fatalf("At(%q) = %s: %v", path, below, err)
					}
				})
			}
		})
	}
}

// TestSelfCompatible: a schema reads what it describes, also as another pointer, from its text,
// in strict form, and as the type of the same fields with another name.
func TestSelfCompatible(t *testing.T) {
	for _, sample := range varied {
		s, err := schema.ForType(reflect.TypeOf(sample))
		if err != nil {
			t.Fatal(err)
		}
		same, err := schema.Parse(s.JSON())
		if err != nil {
			t.Fatalf("%T: its text is no schema: %v", sample, err)
		}
		if same.String() != s.String() {
			t.Errorf("%T: text changes when parsed", sample)
		}
		for _, consumer := range []*schema.Schema{s, same, nil} {
			if problems := schema.Compatible(s, consumer); len(problems) > 0 {
				t.Errorf("%T with itself: %v", sample, problems)
			}
		}
		projected, err := all.Project(s.Ordered())
		if err != nil {
			continue // it has a place for any value
		}
		strict := parse(t, string(projected))
		if problems := schema.Compatible(strict, s); len(problems) > 0 {
			t.Errorf("%T: what an answer in the projection holds cannot be read: %v", sample, problems)
		}
	}
	type twin tree
	a, _ := schema.For[tree]()
	b, _ := schema.For[twin]()
	if problems := append(schema.Compatible(a, b), schema.Compatible(b, a)...); len(problems) > 0 {
		t.Errorf("same fields under another name: %v", problems)
	}
}
