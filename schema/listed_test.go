package schema_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stonelayer/stone/schema"
)

type ticket struct {
	Area   string  `json:"area" enum:"bug, billing"`
	Maybe  *string `json:"maybe" enum:"a,b"`
	Left   string  `json:"left,omitempty" enum:"x,y"`
	Paint  color   `json:"paint"`
	Level  *level  `json:"level"`
	Nested []struct {
		ByName map[string]color `json:"byName"`
	} `json:"nested"`
	Inner *ticket `json:"inner"`
	*part
	Free string `json:"free"`
}

type part struct {
	Side string `json:"side" enum:"left,right"`
}

func TestLists(t *testing.T) {
	wrong, l2, l3 := "c", level(2), level(3)
	good := ticket{Area: "bug", Paint: "red", Free: "anything"}
	with := func(change func(*ticket)) ticket {
		v := good
		change(&v)
		return v
	}
	type names = []struct {
		ByName map[string]color `json:"byName"`
	}
	for _, test := range []struct {
		value any
		want  string
	}{
		{good, ``},
		{with(func(v *ticket) { v.Area = "blue" }), `area: want "bug" or "billing", got "blue"`},
		{with(func(v *ticket) { v.Area = "" }), `area: want "bug" or "billing", got ""`},
		{with(func(v *ticket) { v.Maybe = &wrong }), `maybe: want "a" or "b", got "c"`},
		{with(func(v *ticket) { v.Left = "z" }), `left: want "x" or "y", got "z"`},
		{with(func(v *ticket) { v.Paint = "blue" }), `paint: want "red" or "green", got "blue"`},
		{with(func(v *ticket) { v.Level = &l2 }), ``},
		{with(func(v *ticket) { v.Level = &l3 }), `level: want "L1" or "L2", got "L3"`},
		{with(func(v *ticket) { v.Nested = names{{}, {map[string]color{"n": "blue"}}} }), `nested[1].byName.n: want "red" or "green", got "blue"`},
		{with(func(v *ticket) { v.Inner = &good }), ``},
		{with(func(v *ticket) { v.Inner = &ticket{Area: "bug"} }), `inner.paint: want "red" or "green", got ""`},
		{with(func(v *ticket) { v.part = &part{} }), `side: want "left" or "right", got ""`},
		{[]color{"red", "blue"}, `[1]: want "red" or "green", got "blue"`},
		{[2]*color{}, ``},
		{color("red"), ``},
		{tree{}, ``},
		{"text", ``},
	} {
		got := ""
		if err := schema.ListsOf(reflect.TypeOf(test.value)).Check(reflect.ValueOf(test.value)); err != nil {
			got = err.(*schema.ValidationError).Problems[0].String()
		}
		if got != test.want {
			t.Errorf("%+v:\n got %s\nwant %s", test.value, got, test.want)
		}
		s, err := schema.ForType(reflect.TypeOf(test.value))
		if err != nil {
			t.Fatal(err)
		}
		text := mustJSON(t, test.value)
		if err := s.Validate(context.Background(), text); (err == nil) != (test.want == "") {
			t.Errorf("%s: the schema says %v, the lists say %q", text, err, got)
		}
	}
	for _, without := range []any{tree{}, pair{}, &left{}, list{}, map[string]any{}, 1} {
		if schema.ListsOf(reflect.TypeOf(without)) != nil {
			t.Errorf("%T has lists", without)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
