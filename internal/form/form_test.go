package form_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/test/cputime"
)

type spec struct {
	Intent, Strategy, Title string
	Candidates, Tags        []string
	Lines                   []string
	Hedge                   time.Duration
	Allow                   bool
	Max                     int
	ScoreMin                *float64
	Context                 json.RawMessage
	Slots                   []string
}

func (s *spec) read(m *form.Map) {
	m.Need("intent")
	m.At("intent").Name(&s.Intent)
	m.At("strategy").OneOf(&s.Strategy, "cascade", "race")
	m.At("title").Text(&s.Title)
	m.At("lines").Texts(&s.Lines)
	m.At("candidates").NameList(&s.Candidates)
	m.At("cap/tags").NameSet(&s.Tags)
	m.At("hedge-ms").Duration(&s.Hedge)
	m.At("allow-failure?").Bool(&s.Allow)
	m.At("retry").Map(func(m *form.Map) {
		m.Need("max")
		m.At("max").Int(&s.Max, 0, 9)
	})
	form.Ptr(&s.ScoreMin, func(to *float64) bool { return m.At("score-min").Float(to, 0, 1) })
	m.At("context").JSON(&s.Context)
	m.At("nodes").Each(func(_ int, v form.Value) {
		v.Map(func(m *form.Map) {
			var as string
			if m.At("as").Name(&as) {
				s.Slots = append(s.Slots, as)
			}
		})
	})
	m.At("free").Entries(func(name string, v form.Value) {
		var n int
		v.Int(&n, 1, math.MaxInt)
		s.Slots = append(s.Slots, name)
	})
}

func TestBothNotations(t *testing.T) {
	half := 0.5
	want := spec{
		Intent: "text/respond", Strategy: "race", Title: ":so", Lines: []string{"a", "a"},
		Candidates: []string{"b/b", "a/a"}, Tags: []string{"x", "y"},
		Hedge: 1500 * time.Millisecond, Allow: true, Max: 3, ScoreMin: &half,
		Context: json.RawMessage(`{"k":["v",1]}`), Slots: []string{"one", "two", "n/a"},
	}
	for name, text := range map[string]string{
		"edn": `{:intent :text/respond :strategy :race :title ":so" :lines ["a" "a"] :candidates [:b/b :a/a]
			:cap/tags #{:y :x} :hedge-ms 1500 :allow-failure? true :retry {:max 3} :score-min 0.5
			:context {:k [:v 1]} :nodes [{:as :one} {:as :two}] :free {:n/a 1}}`,
		"json": `{"intent": ":text/respond", ":strategy": "race", "title": ":so", "lines": ["a", "a"],
			"candidates": ["b/b", ":a/a"], "cap/tags": ["y", "x"], "hedge-ms": 1500, "allow-failure?": true,
			"retry": {"max": 3}, "score-min": 0.5, "context": {"k": ["v", 1]},
			"nodes": [{"as": "one"}, {"as": ":two"}], "free": {":n/a": 1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var got spec
			if err := form.Read(parse(t, text), got.read).Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string // kind, then the text of the fault
	}{
		{`[1]`, []string{"invalid 1:1: expected a map, found a vector"}},
		{`{}`, []string{`missing 1:1: intent: the field "intent" is missing`}},
		{`{:intent "a"}`, []string{`invalid 1:10: intent: expected a name (a keyword such as :text/respond), found the string "a"`}},
		{`{"intent": "1 a"}`, []string{`invalid 1:12: intent: expected a name (a string such as "text/respond"), found the string "1 a"`}},
		{`{:intent nil}`, []string{`invalid 1:10: intent: expected a name (a keyword such as :text/respond), found nil`}},
		{`{:intent :a :strategy :rase}`, []string{`unknown 1:23: strategy: unknown name "rase"; known are cascade, race; did you mean "race"?`}},
		{`{:intent :a :title :b}`, []string{`invalid 1:20: title: expected a string, found the keyword :b`}},
		{`{:intent :a :candidates #{:b}}`, []string{`invalid 1:25: candidates: expected a vector of names, found a set`}},
		{`{:intent :a :candidates [:b :c :b]}`, []string{`duplicate 1:32: candidates[2]: the name "b" appears twice`}},
		{`{:intent :a :cap/tags :b}`, []string{`invalid 1:23: cap/tags: expected a set of names, such as #{:text/answer}, found the keyword :b`}},
		{`{"intent": "a", "cap/tags": ["b", 42]}`, []string{`invalid 1:35: cap/tags[1]: expected a name (a string such as "text/respond"), found 42`}},
		{`{:intent :a :hedge-ms -1}`, []string{`out-of-range 1:23: hedge-ms: expected an integer from 0 to 3162240000000, found -1`}},
		{`{:intent :a :hedge-ms 1.0}`, []string{`invalid 1:23: hedge-ms: expected an integer, found 1.0`}},
		{`{:intent :a :allow-failure? "true"}`, []string{`invalid 1:29: allow-failure?: expected true or false, found the string "true"`}},
		{`{:intent :a :retry {:maxx 1}}`, []string{
			`missing 1:20: retry.max: the field "max" is missing`,
			`unknown-keys 1:21: retry.maxx: unknown field maxx; known are max; did you mean "max"?`,
		}},
		{`{:intent :a :retry {:max 99999999999999999999999}}`, []string{`out-of-range 1:26: retry.max: expected an integer from 0 to 9, found 99999999999999999999999N`}},
		{`{:intent :a :score-min 1.5}`, []string{`out-of-range 1:24: score-min: expected a number from 0 to 1, found 1.5`}},
		{`{:intent :a :score-min ##NaN}`, []string{`invalid 1:24: score-min: expected a number, found ##NaN`}},
		{`{:intent :a :context {1 2}}`, []string{`invalid 1:23: context: expected a string, keyword or symbol as a key in JSON, found 1`}},
		{`{:intent :a :free {:b 0 "c" 1}}`, []string{
			`out-of-range 1:23: free.b: expected an integer of at least 1, found 0`,
			`invalid 1:25: free: expected a name (a keyword such as :text/respond) for a key, found the string "c"`,
		}},
		{`{"intent": "a", ":intent": "b"}`, []string{`duplicate 1:17: intent: the field "intent" appears twice, with and without a colon`}},
		{`{:intent :a "title" "b" 3 4}`, []string{
			`unknown-keys 1:13: expected names for keys, found the string "title"`,
			`unknown-keys 1:25: expected names for keys, found 3`,
		}},
		{`{:intent :a :nodes [{} {:az :b :as 1}]}`, []string{
			`invalid 1:36: nodes[1].as: expected a name (a keyword such as :text/respond), found 1`,
			`unknown-keys 1:25: nodes[1].az: unknown field az; known are as; did you mean "as"?`,
		}},
	} {
		var got []string
		for _, f := range form.Read(parse(t, tc.text), new(spec).read) {
			got = append(got, f.Kind+" "+f.Error())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s:\n%s", tc.text, diff)
		}
	}
}

func TestFaultyFieldLeavesItsVariable(t *testing.T) {
	s := spec{Title: "before", Candidates: []string{"before"}}
	form.Read(parse(t, `{:title 1 :candidates [:a 1] :score-min 2}`), s.read)
	if s.Title != "before" || s.Candidates[0] != "before" || s.ScoreMin != nil {
		t.Errorf("a fault changed %+v", s)
	}
}

func TestMissingFieldReadsNothing(t *testing.T) {
	want := spec{Intent: "i", Strategy: "race", Title: "t", Lines: []string{"l"}, Candidates: []string{"c"}, Tags: []string{"g"},
		Hedge: time.Second, Allow: true, Max: 3, Context: json.RawMessage("1")}
	got := want
	faults := form.Read(parse(t, `{}`), func(m *form.Map) {
		m.AllowRest()
		for _, ok := range []bool{
			m.At("a").Name(&got.Intent), m.At("a").OneOf(&got.Strategy, "cascade"), m.At("a").Text(&got.Title),
			m.At("a").Texts(&got.Lines), m.At("a").NameList(&got.Candidates), m.At("a").NameSet(&got.Tags),
			m.At("a").Duration(&got.Hedge), m.At("a").Bool(&got.Allow), m.At("a").Int(&got.Max, 0, 9),
			m.At("a").JSON(&got.Context), form.Ptr(&got.ScoreMin, func(to *float64) bool { return m.At("a").Float(to, 0, 1) }),
			m.At("a").Map(func(*form.Map) { t.Error("read a missing map") }),
			m.At("a").Each(func(int, form.Value) { t.Error("read a missing vector") }),
			m.At("a").Entries(func(string, form.Value) { t.Error("read missing entries") }),
		} {
			if ok {
				t.Error("a missing field was read")
			}
		}
	})
	if diff := cmp.Diff(want, got); diff != "" || faults != nil {
		t.Errorf("%v\n%s", faults, diff)
	}
}

func TestHostile(t *testing.T) {
	var b strings.Builder
	b.WriteString("{:intent :a")
	for i := range 200_000 {
		fmt.Fprintf(&b, " :k%d 1", i)
	}
	b.WriteString("}")
	var faults form.Faults
	took := cputime.Units(func() { faults = form.Read(parse(t, b.String()), new(spec).read) })
	t.Logf("%.1f units", took)
	if n := len(faults); n != 1001 || !strings.Contains(faults[n-1].Message, "199000 further faults") {
		t.Errorf("%d faults, the last one: %v", n, faults[n-1])
	}
	if took > 100 {
		t.Errorf("took %.1f units of work", took)
	}
	long := strings.Repeat("é", 1<<20)
	faults = form.Read(parse(t, `{:intent "`+long+`" :`+long+` 1}`), new(spec).read)
	for _, f := range faults {
		if len(f.Error()) > 400 {
			t.Errorf("a fault of %d bytes", len(f.Error()))
		}
	}
}

func parse(t *testing.T, text string) edn.Value {
	t.Helper()
	v, err := edn.ReadEither([]byte(text), edn.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func Example() {
	v, err := edn.Read([]byte("{:max -1\n :candidate :a/b}"), edn.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var candidates []string
	var tries int
	faults := form.Read(v, func(m *form.Map) {
		m.At("candidates").NameList(&candidates)
		m.At("max").Int(&tries, 0, 100)
	})
	for _, f := range faults {
		fmt.Println(f)
	}
	// Output:
	// 1:7: max: expected an integer from 0 to 100, found -1
	// 2:2: candidate: unknown field candidate; known are candidates, max; did you mean "candidates"?
}
