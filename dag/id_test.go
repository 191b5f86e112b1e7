package dag_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
)

func envelopeID(envelope string) dag.ID { return sha256.Sum256([]byte(envelope)) }

func newNode(t testing.TB, s dag.Spec) *dag.Node {
	t.Helper()
	n, err := dag.NewNode(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestIDIsTheHashOfTheEnvelope(t *testing.T) {
	type point struct {
		Y int `json:"y"`
		X int `json:"x"`
	}
	for _, c := range []struct {
		typ     string
		content any
		want    string // the envelope
	}{
		{"note", "hello", `{"content":"hello","parents":[],"type":"note"}`},
		{"note", nil, `{"content":null,"parents":[],"type":"note"}`},
		{"note", point{Y: 2, X: 1}, `{"content":{"x":1,"y":2},"parents":[],"type":"note"}`},
		{"note", json.RawMessage(` { "b" : 1.50, "a" : [ ] } `), `{"content":{"a":[],"b":1.5},"parents":[],"type":"note"}`},
		{"note", int64(1 << 53), `{"content":9007199254740992,"parents":[],"type":"note"}`},
		{"note", int64(1<<53 + 1), `{"content":9007199254740993,"parents":[],"type":"note"}`},
		{"note", json.RawMessage(`9007199254740993`), `{"content":9007199254740993,"parents":[],"type":"note"}`},
		{"note", int64(math.MinInt64), `{"content":-9223372036854775808,"parents":[],"type":"note"}`},
		{"note", int64(math.MaxInt64), `{"content":9223372036854775807,"parents":[],"type":"note"}`},
		{"note", uint64(math.MaxUint64), `{"content":18446744073709551615,"parents":[],"type":"note"}`},
		{"note", 1e21, `{"content":1e+21,"parents":[],"type":"note"}`},
		{"note", math.Copysign(0, -1), `{"content":0,"parents":[],"type":"note"}`},
		{"note", "\u2028<&>\"\\\x00", `{"content":"` + "\u2028" + `<&>\"\\\u0000","parents":[],"type":"note"}`},
		{"Größe/日本 🜨", true, `{"content":true,"parents":[],"type":"Größe/日本 🜨"}`},
		{"a\nb\"c\x00", true, `{"content":true,"parents":[],"type":"a\nb\"c\u0000"}`},
	} {
		n := newNode(t, dag.Spec{Type: c.typ, Content: c.content})
		if n.ID() != envelopeID(c.want) {
			t.Errorf("%s %v: id is not that of %s", c.typ, c.content, c.want)
		}
		if want := c.want[len(`{"content":`):strings.LastIndex(c.want, `,"parents"`)]; n.JSON() != want || string(n.Content()) != want {
			t.Errorf("%s: content %s, want %s", c.typ, n.JSON(), want)
		}
		if n.Type() != c.typ {
			t.Errorf("type %q, want %q", n.Type(), c.typ)
		}
	}
}

func TestIDHasTheParentsInTheirOrder(t *testing.T) {
	a := newNode(t, dag.Spec{Type: "t", Content: "a"})
	b := newNode(t, dag.Spec{Type: "t", Content: "b"})
	for _, parents := range [][]*dag.Node{{a}, {b}, {a, b}, {b, a}} {
		var quoted []string
		for _, p := range parents {
			quoted = append(quoted, fmt.Sprintf("%q", p.ID().String()))
		}
		n := newNode(t, dag.Spec{Type: "t", Content: 1, Parents: parents})
		if want := envelopeID(`{"content":1,"parents":[` + strings.Join(quoted, ",") + `],"type":"t"}`); n.ID() != want {
			t.Errorf("parents %s: id %s, want %s", names(parents), n.ID(), want)
		}
		if n.Parent() != parents[0] {
			t.Errorf("parents %s: first parent is %s", names(parents), n.Parent())
		}
	}
}

func TestIDLeavesOutMetaAndTime(t *testing.T) {
	meta := map[string]string{"model": "m"}
	at := time.Date(2001, 2, 3, 4, 5, 6, 7, time.FixedZone("", 3600))
	bare := newNode(t, dag.Spec{Type: "t", Content: 1})
	full := newNode(t, dag.Spec{Type: "t", Content: 1, Meta: meta, Time: at})
	if bare.ID() != full.ID() {
		t.Errorf("ids differ: %s and %s", bare.ID(), full.ID())
	}
	meta["model"] = "changed"
	full.Meta()["model"] = "changed"
	if got := full.Meta()["model"]; got != "m" {
		t.Errorf("meta is not copied: %q", got)
	}
	if !full.Time().Equal(at) || !bare.Time().IsZero() {
		t.Errorf("times %v and %v, want %v and zero", full.Time(), bare.Time(), at)
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"}, // not known
		{"1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"1969-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.999999999Z"},
		{"1678-01-01T00:00:00Z", "1678-01-01T00:00:00Z"},
		{"2261-12-31T23:59:59.999999999Z", "2261-12-31T23:59:59.999999999Z"},
		{"1600-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
		{"3000-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
	} {
		at, err := time.Parse(time.RFC3339, c.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := newNode(t, dag.Spec{Type: "t", Time: at}).Time().Format(time.RFC3339Nano); got != c.want {
			t.Errorf("%s: got %s, want %s", c.in, got, c.want)
		}
	}
}

func TestTypesAndSpecsGiveTheSameNode(t *testing.T) {
	type doc struct {
		Name string         `json:"name"`
		Tags map[string]int `json:"tags,omitempty"`
		N    uint64         `json:"n"`
	}
	v := doc{Name: "é", Tags: map[string]int{"b": 1, "a": 2}, N: math.MaxUint64}
	d := build(t, dag.DAG{}, "a:t b:t")
	typed, err := dag.NewType[doc]("doc").Node(d, v, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	plain := newNode(t, dag.Spec{Type: "doc", Content: v, Parents: d.Next()})
	raw := newNode(t, dag.Spec{Type: "doc", Content: typed.Content(), Parents: d.Next()})
	if typed.ID() != plain.ID() || typed.ID() != raw.ID() {
		t.Errorf("ids differ: %s, %s, %s", typed.ID(), plain.ID(), raw.ID())
	}
}

func TestWhatJSONCannotHoldIsRefused(t *testing.T) {
	type item struct {
		Price float64 `json:"price"`
		Name  string  `json:"name"`
	}
	type cart struct {
		Items []item `json:"items"`
	}
	node := newNode(t, dag.Spec{Type: "t"})
	for _, c := range []struct {
		name string
		spec dag.Spec
		want []string // parts of the error
	}{
		{"NaN", dag.Spec{Type: "cart", Content: cart{[]item{{}, {Price: math.NaN()}}}}, []string{`"cart"`, "items[1].price"}},
		{"Inf", dag.Spec{Type: "cart", Content: cart{[]item{{Price: math.Inf(-1)}}}}, []string{"items[0].price"}},
		{"UTF-8", dag.Spec{Type: "cart", Content: cart{[]item{{Name: "a\xff"}}}}, []string{"items[0].name", "UTF-8"}},
		{"channel", dag.Spec{Type: "t", Content: make(chan int)}, []string{`"t"`, "chan"}},
		{"huge number", dag.Spec{Type: "t", Content: json.RawMessage(`{"n":1e400}`)}, []string{"n", "float64"}},
		{"no JSON", dag.Spec{Type: "t", Content: json.RawMessage(`{"n":`)}, []string{`"t"`}},
		{"empty raw", dag.Spec{Type: "t", Content: json.RawMessage(nil)}, []string{`"t"`}},
		{"duplicate key", dag.Spec{Type: "t", Content: json.RawMessage(`{"n":1,"n":2}`)}, []string{"n", "duplicate"}},
		{"no type", dag.Spec{Content: 1}, []string{"type name is empty"}},
		{"type name", dag.Spec{Type: "a\xffb", Content: 1}, []string{`"a\xffb"`, "UTF-8"}},
		{"nil parent", dag.Spec{Type: "t", Parents: []*dag.Node{node, nil}}, []string{`parent 1`, "nil"}},
		{"meta key", dag.Spec{Type: "t", Meta: map[string]string{"\xff": ""}}, []string{`"\xff"`, "UTF-8"}},
		{"meta value", dag.Spec{Type: "t", Meta: map[string]string{"k": "\xff"}}, []string{`"k"`, "UTF-8"}},
	} {
		n, err := dag.NewNode(c.spec)
		if err == nil {
			t.Errorf("%s: got node %s, want an error", c.name, n)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q does not name %q", c.name, err, want)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error has more than one line: %q", c.name, err)
		}
	}
}

func TestBadTypesReportAnErrorAndNeverPanic(t *testing.T) {
	type loop struct{ F func() }
	var zero dag.Type[int]
	for name, typ := range map[string]dag.AnyType{
		"empty name":  dag.NewType[int](""),
		"bad UTF-8":   dag.NewType[int]("\xff"),
		"channel":     dag.NewType[chan int]("t"),
		"func inside": dag.NewType[loop]("t"),
		"zero Type":   zero,
	} {
		if typ.Err() == nil {
			t.Errorf("%s: want an Err", name)
		}
		_, _ = typ.Name(), typ.Query().String()
	}
	if typ := zero.WithSchema(nil); typ.Err() == nil || typ.Schema() != nil {
		t.Errorf("zero Type with a schema: want an Err")
	}
	for _, typ := range []dag.Type[int]{dag.NewType[int](""), dag.NewType[int]("\xff"), zero} {
		if d, err := typ.Append(dag.DAG{}, 1); err == nil || d.Len() != 0 {
			t.Errorf("type %q: appended %d nodes, want an error", typ.Name(), d.Len())
		}
	}
	if typ := dag.NewType[any]("Größe 🜨"); typ.Err() != nil {
		t.Errorf("any Unicode name is good: %v", typ.Err())
	}
}

func TestParseID(t *testing.T) {
	id := newNode(t, dag.Spec{Type: "t"}).ID()
	got, err := dag.ParseID(id.String())
	if err != nil || got != id {
		t.Errorf("got %s, %v, want %s", got, err, id)
	}
	for _, bad := range []string{"", "ab", strings.ToUpper(id.String()), id.String() + "0", strings.Repeat("g", 64)} {
		if got, err := dag.ParseID(bad); err == nil || got != (dag.ID{}) {
			t.Errorf("%q: got %s, want an error", bad, got)
		}
	}
}
