package page

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestFieldsOf(t *testing.T) {
	for _, c := range []struct {
		before, now string
		want        string // name: before → now, then how many are equal
	}{
		{`74`, `75`, ": 74 → 75; 0 equal"},
		{`74`, `74`, "1 equal"},
		{`{"a": 1, "b": {"c": "x", "d": [1, 2]}}`, `{"a": 1, "b": {"c": "y", "d": [1, 3]}}`, "b.c: x → y; b.d[1]: 2 → 3; 2 equal"},
		{`{"a": 1}`, `{"b": 1}`, "a: 1 → ; b:  → 1; 0 equal"},
		{`"{\"a\": 1}"`, `{"a": 2}`, "a: 1 → 2; 0 equal"}, // as models write it
		{``, `{}`, ":  → {}; 0 equal"},
	} {
		differ, equal := fieldsOf(json.RawMessage(c.before), json.RawMessage(c.now))
		var got strings.Builder
		for _, f := range differ {
			fmt.Fprintf(&got, "%s: %s → %s; ", f.Name, f.Before, f.Now)
		}
		fmt.Fprintf(&got, "%d equal", equal)
		if got.String() != c.want {
			t.Errorf("%s and %s: got %q, want %q", c.before, c.now, got.String(), c.want)
		}
	}
}

// An answer is laid beside what was expected of it.
func TestExpectedOf(t *testing.T) {
	for _, c := range [][3]string{
		{`74`, `75`, "[{ 74 75}]"},
		{`{"a": 1}`, `{"a": 2, "more": 3}`, "[{a 1 2}]"}, // a scorer may look at some fields only
		{`{"a": 1, "b": 2}`, `{"a": 1}`, "[{b 2 }]"},
		{`"yes"`, `{"text": "no"}`, "[{ yes no}]"}, // the answer of an agent
		{`"yes"`, `{"a": 1, "b": 2}`, `[{ yes {"a": 1, "b": 2}}]`},
		{``, `{"a": 1}`, "[{a  1}]"}, // none was recorded
	} {
		differ, _ := expectedOf(json.RawMessage(c[0]), json.RawMessage(c[1]))
		if got := fmt.Sprint(differ); got != c[2] {
			t.Errorf("%s and %s: got %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// Ten versions with nearly the same cost and score have names that can be told apart.
func TestNamesInPlot(t *testing.T) {
	p := &plot{}
	for i := range 10 {
		p.Points = append(p.Points, point{Name: fmt.Sprintf("prompt-version-%d", i), cost: 0.004 + float64(i%3)*0.0001, Estimate: Estimate{Mean: 0.8 + float64(i)*0.004, Low: 0.7, High: 0.9}})
	}
	p.lay()
	for i, a := range p.Points {
		width := float64(len(a.Name)) * charOfPlot
		if a.LabelX < plotLeft || a.LabelX+width > plotLeft+plotWidth+20 || a.LabelY < plotTop || a.LabelY > plotTop+plotHeight {
			t.Errorf("%s leaves the plot: %v, %v", a.Name, a.LabelX, a.LabelY)
		}
		for _, b := range p.Points[i+1:] {
			if a.LabelX < b.LabelX+width && b.LabelX < a.LabelX+width && math.Abs(a.LabelY-b.LabelY) < lineOfPlot {
				t.Errorf("%s lies on %s", a.Name, b.Name)
			}
		}
	}
}

func TestColored(t *testing.T) {
	for content, want := range map[string]string{
		`{"a<": "b>", "n": -1.5e3, "ok": true}`: `<span class="json">{<b>&#34;a&lt;&#34;:</b> <q>&#34;b&gt;&#34;</q>, <b>&#34;n&#34;:</b> <i>-1.5e3</i>, <b>&#34;ok&#34;:</b> <i>true</i>}</span>`,
		`<b>no JSON`:                            `&lt;b&gt;no JSON`,
		`{"cut": "of`:                           `{&#34;cut&#34;: &#34;of`,
		``:                                      ``,
	} {
		if got := string(colored(content)); got != want {
			t.Errorf("%s: got %s, want %s", content, got, want)
		}
	}
}
