package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// reference is the slow encoder: encoding/json, and its text made canonical.
func reference(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return AppendJSON(nil, b.Bytes())
}

// agree fails unless Append and the reference return the same text or both fail.
func agree(t rapid.TB, v any) {
	t.Helper()
	got, err := Append(nil, v)
	want, wantErr := reference(v)
	if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
		t.Fatalf("%T %+v:\n got %s, %v\nwant %s, %v", v, v, got, err, want, wantErr)
	}
}

func decodeExact(src []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	return v, d.Decode(&v)
}

// Types with methods, as users write them.
type (
	valueMarshaler   struct{ N int }
	pointerMarshaler struct{ N int }
	valueText        struct{ N int }
	pointerText      struct{ N int }
	textKey          int
	clashingKey      int
	textString       string
	failing          struct{ Fail bool }
	evenZero         int
	pointerZero      struct{ N int }
	namedByte        byte
	textByte         byte
	namedBytes       []namedByte
)

func (m valueMarshaler) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"z": %d.0, "a": [1e2]}`, m.N), nil
}
func (m *pointerMarshaler) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `"p%d"`, m.N), nil
}
func (m valueText) MarshalText() ([]byte, error)    { return fmt.Appendf(nil, "v<%d>", m.N), nil }
func (m *pointerText) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "p\"%d", m.N), nil }
func (k textKey) MarshalText() ([]byte, error)      { return fmt.Appendf(nil, "k%d", int(k)), nil }
func (k clashingKey) MarshalText() ([]byte, error)  { return []byte(strconv.Itoa(int(k) % 2)), nil }
func (s textString) MarshalText() ([]byte, error)   { return []byte("text:" + string(s)), nil }
func (b textByte) MarshalText() ([]byte, error)     { return []byte{'b', '0' + byte(b)%10}, nil }
func (z evenZero) IsZero() bool                     { return z%2 == 0 }
func (z *pointerZero) IsZero() bool                 { return z.N > 0 }
func (f failing) MarshalJSON() ([]byte, error) {
	if f.Fail {
		return nil, errors.New("told to\nfail")
	}
	return []byte("true"), nil
}

// flatLeaves is the number of leading leaves that have flat types.
const flatLeaves = 17

var leaves = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[int8](),
	reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](), reflect.TypeFor[uint](),
	reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](),
	reflect.TypeFor[uintptr](), reflect.TypeFor[[3]byte](), reflect.TypeFor[time.Duration](), reflect.TypeFor[evenZero](),
	reflect.TypeFor[struct{}](), reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[any](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[namedBytes](), reflect.TypeFor[[]textByte](),
	reflect.TypeFor[json.Number](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[time.Time](),
	reflect.TypeFor[valueMarshaler](), reflect.TypeFor[pointerMarshaler](),
	reflect.TypeFor[valueText](), reflect.TypeFor[pointerText](), reflect.TypeFor[textString](),
	reflect.TypeFor[failing](), reflect.TypeFor[pointerZero](),
	reflect.TypeFor[fmt.Stringer](), reflect.TypeFor[json.Marshaler](),
}

var keys = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[uint8](), reflect.TypeFor[textKey](),
	reflect.TypeFor[clashingKey](), reflect.TypeFor[textString](), reflect.TypeFor[valueText](),
}

var tags = []string{
	``, `json:"a"`, `json:"b,omitempty"`, `json:",omitzero"`, `json:",string"`, `json:"z<&>,omitzero,string"`,
	`json:"-"`, `json:"-,"`, `json:"é,omitempty,string"`, `json:"A"`, `json:"in\"valid"`, `json:"日本,omitzero,omitempty"`,
}

// drawType generates a Go type.
func drawType(t *rapid.T, depth int, leaves []reflect.Type) reflect.Type {
	if depth == 0 {
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0:
		return reflect.PointerTo(drawType(t, depth-1, leaves))
	case 1:
		return reflect.SliceOf(drawType(t, depth-1, leaves))
	case 2:
		return reflect.ArrayOf(rapid.IntRange(0, 3).Draw(t, "len"), drawType(t, depth-1, leaves))
	case 3:
		return reflect.MapOf(rapid.SampledFrom(keys).Draw(t, "key"), drawType(t, depth-1, leaves))
	case 4, 5:
		return drawStruct(t, depth-1, leaves)
	}
	return drawType(t, 0, leaves)
}

func drawStruct(t *rapid.T, depth int, leaves []reflect.Type) reflect.Type {
	fields := make([]reflect.StructField, rapid.IntRange(0, 6).Draw(t, "fields"))
	for i := range fields {
		fields[i] = reflect.StructField{
			Name: "F" + strconv.Itoa(i),
			Type: drawType(t, depth, leaves),
			Tag:  reflect.StructTag(rapid.SampledFrom(tags).Draw(t, "tag")),
		}
	}
	for _, typ := range embeddable {
		if rapid.IntRange(0, 3).Draw(t, "embed") == 0 {
			fields = append(fields, reflect.StructField{Name: embedName(typ), Type: typ, Anonymous: true})
		}
	}
	return reflect.StructOf(fields)
}

// Types whose promoted fields clash with each other and with the tags above.
type (
	Deep  struct{ ID, Only int }
	Outer struct {
		Deep
		Only string `json:"a"`
		F0   bool
	}
	Other struct {
		*Deep
		ID   *string `json:"ID,omitempty"`
		Only uint8   `json:"b"`
		F1   []int
	}
)

var embeddable = []reflect.Type{reflect.TypeFor[Deep](), reflect.TypeFor[*Outer](), reflect.TypeFor[Other]()}

func embedName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// fill gives v a value; zero values are common, for the options that omit them.
func fill(t *rapid.T, v reflect.Value, depth int) {
	if rapid.IntRange(0, 5).Draw(t, "zero") == 0 {
		return
	}
	switch v.Type() {
	case numberType:
		v.SetString(rapid.SampledFrom([]string{"", "1", "-0", "1.50", "1e400", "x", "01", "9007199254740993", "-", " 1"}).Draw(t, "number"))
		return
	case rawMessageType:
		v.SetBytes([]byte(rapid.SampledFrom([]string{``, `{"b":1, "a":-0.0}`, `[`, `{"a":1,"a":2}`, `"\ud800"`, `1E5`}).Draw(t, "raw")))
		return
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(-1e10, 1e12).Draw(t, "time"), 0).UTC()))
		return
	case reflect.TypeFor[fmt.Stringer]():
		v.Set(reflect.ValueOf(time.Duration(rapid.Int64().Draw(t, "duration"))))
		return
	case reflect.TypeFor[json.Marshaler]():
		v.Set(reflect.ValueOf(valueMarshaler{7}))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "string"))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Float32, reflect.Float64:
		special := []float64{math.Copysign(0, -1), math.NaN(), math.Inf(1), 1e21, 1e-7, 0.1, 1 << 53, 1e20}
		v.SetFloat(rapid.OneOf(rapid.Float64(), rapid.SampledFrom(special)).Draw(t, "float"))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), depth)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), depth)
		}
	default:
		fillReference(t, v, depth)
	}
}

func fillReference(t *rapid.T, v reflect.Value, depth int) {
	n := rapid.IntRange(0, 4).Draw(t, "len")
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), depth)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), depth)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range n {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, depth)
			fill(t, elem, depth)
			v.SetMapIndex(key, elem)
		}
	case reflect.Interface:
		if depth > 0 {
			elem := reflect.New(drawType(t, 1, leaves)).Elem()
			fill(t, elem, depth-1)
			v.Set(elem)
		}
	}
}

// checkAnyValue is the main property: for values of any type, the compiled
// encoder and encoding/json with AppendJSON agree. The exceptions, invalid UTF-8
// and types that JSON cannot hold, are not drawn here; TestRefuses has them.
func checkAnyValue(t *rapid.T) {
	v := reflect.New(drawStruct(t, 2, leaves))
	fill(t, v.Elem(), 2)
	agree(t, v.Elem().Interface())
	agree(t, v.Interface()) // now addressable: methods with pointer receivers count
}

func init() { // more than rapid's 100, since they are cheap; the command line still decides
	if err := flag.Set("rapid.checks", "3000"); err != nil {
		panic(err)
	}
}

func TestAgreesWithEncodingJSON(t *testing.T) { rapid.Check(t, checkAnyValue) }

func FuzzAgreesWithEncodingJSON(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkAnyValue)) }

func FuzzStrings(f *testing.F) {
	for _, s := range []string{"", "plain", "1234567\"", "12345678\\", "é\n\u2028\x00", "1234567\xff", "\xed\xa0\x80\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		type quoted struct {
			S string `json:",string"`
		}
		if utf8.ValidString(s) {
			agree(t, s)
			agree(t, quoted{s})
			agree(t, map[string]any{s: s, "é": 1, "\ufb33": 2, "😀": 3})
			return
		}
		for _, v := range []any{s, quoted{s}, map[string]int{s: 1}, textString(s)} {
			if got, err := Append(nil, v); err == nil {
				t.Fatalf("invalid UTF-8 %q was written as %s", s, got)
			}
		}
	})
}

// TestFlatMeansCopy checks the promise of Flat for generated types.
func TestFlatMeansCopy(t *testing.T) {
	flat := 0
	rapid.Check(t, func(t *rapid.T) {
		typ := drawStruct(t, 2, leaves[:flatLeaves])
		e, err := For(typ)
		if err != nil || !e.Flat() {
			return
		}
		flat++
		v, back := reflect.New(typ), reflect.New(typ)
		fill(t, v.Elem(), 0)
		text, err := e.Append(nil, v.UnsafePointer())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, back.Interface()); err != nil || !reflect.DeepEqual(v.Interface(), back.Interface()) {
			t.Fatalf("%+v came back as %+v, %v, from %s", v, back, err, text)
		}
	})
	t.Logf("%d values of flat types", flat)
}
