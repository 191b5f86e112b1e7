package address_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stonelayer/stone/internal/address"
)

func TestParse(t *testing.T) {
	for segment, want := range map[string]address.Segment{
		"draft":          {Name: "draft", Occurrence: 1},
		"draft#2":        {Name: "draft", Occurrence: 2},
		"a%2Fb%5B1%5D":   {Name: "a/b[1]", Occurrence: 1},
		"100%":           {Name: "100%", Occurrence: 1},
		"loop#3[2]":      {Name: "loop", Occurrence: 3, Marks: []address.Mark{{address.Index, "2", 2}}},
		`match["x%2Fy"]`: {Name: "match", Occurrence: 1, Marks: []address.Mark{{address.Index, `"x/y"`, -1}}},
		"draft@2~3":      {Name: "draft", Occurrence: 1, Marks: []address.Mark{{address.Visit, "2", 2}, {address.Attempt, "3", 3}}},
		"vote@2[17]":     {Name: "vote", Occurrence: 1, Marks: []address.Mark{{address.Visit, "2", 2}, {address.Index, "17", 17}}},
		"":               {Occurrence: 1},
		"[":              {Occurrence: 1, Marks: []address.Mark{{address.Index, "", -1}}},
	} {
		if diff := cmp.Diff(want, address.Parse(segment), cmpopts.IgnoreUnexported(address.Segment{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", segment, diff)
		}
	}
}

func TestReadable(t *testing.T) {
	for path, want := range map[string]string{
		"p/draft":                     "p/draft",
		"said/llm|code 1":             "said/llm/code 1",
		"said/a|b|c 2 repair 1":       "said/a/b/c 2 repair 1",
		"race/judge x|y 1":            "race/judge x/y 1",
		"act/k|stream 1@2~3":          "act/k/stream 1@2~3",
		"chat%2Fanswer/turn-1":        "chat/answer/turn-1",
		`p/match["a|b 1"]/c%5B1%5D`:   `p/match["a|b 1"]/c[1]`,
		"p/a|b":                       "p/a|b", // a name of the author
		"m|small 1":                   "m/small 1",
		"each[2]/m|small 1/llm|big 3": "each[2]/m/small 1/llm/big 3",
	} {
		if got := address.Readable(path); got != want {
			t.Errorf("Readable(%s) = %s, want %s", path, got, want)
		}
	}
}

func TestPlace(t *testing.T) {
	for path, want := range map[string]string{
		"p":                             "p",
		"p/loop[2]/lane[17]/draft@2~3":  "p/loop/lane/draft",
		"p/a#2[3]/b":                    "p/a#2/b",
		`p/match["a%2Fb"]/c`:            "p/match/c",
		"p/x%40y/z%7E1~2":               "p/x%40y/z%7E1",
		"exam/pupil[3]/answer/turn-2@4": "exam/pupil/answer/turn-2",
		"p/bad[1/b":                     "p/bad/b",
	} {
		if got := address.Place(path); got != want {
			t.Errorf("Place(%s) = %s, want %s", path, got, want)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		path, outer string
		want        bool
	}{
		{"p/a", "p", true}, {"p/a[1]", "p/a", true}, {"p/a~2", "p/a", true}, {"p/a~2/step", "p/a", true},
		{"p", "p", false}, {"p/ab", "p/a", false}, {"p/a#2", "p/a", false}, {"p/a@2", "p/a", false}, {"p", "p/a", false},
	} {
		if got := address.Within(c.path, c.outer); got != c.want {
			t.Errorf("Within(%s, %s) = %t", c.path, c.outer, got)
		}
	}
}

func TestBefore(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"p/m[2]/x", "p/m[10]/a", true}, {"p/m[10]/a", "p/m[2]/x", false}, {"p/m[2]/x", "p/m[2]/y", false},
		{"p/a", "p/b", false}, {"p/m[1]", "p/m[1]/x", false}, {`p/m["a"]`, `p/m["b"]`, false}, {"p/m@1[1]", "p/m@2[0]", false},
		{"p/m[1]/n[3]", "p/m[1]/n[4]/q", true},
	} {
		if got := address.Before(c.a, c.b); got != c.want {
			t.Errorf("Before(%s, %s) = %t", c.a, c.b, got)
		}
	}
}

func TestParts(t *testing.T) {
	path := address.Child(address.Child("p", "a/b", 1), "c", 2)
	if path != "p/a%2Fb/c#2" || address.Parent(path) != "p/a%2Fb" || address.Last(path) != "c#2" || address.Parent("p") != "" || address.Last("p") != "p" {
		t.Errorf("%s has the parent %s and the last segment %s", path, address.Parent(path), address.Last(path))
	}
	if got := slices.Collect(address.Segments(path)); !slices.Equal(got, []string{"p", "a%2Fb", "c#2"}) {
		t.Errorf("segments %q", got)
	}
}

// Any name can be written and read back, with any marks after it.
func FuzzName(f *testing.F) {
	for _, name := range []string{"a", "a/b", "100%", "%2F", "x#2[3]@4~5", "ż/ó[ł]w", "\xff%"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" {
			return
		}
		path := address.Child("p", name, 3) + "[7]@2~4"
		s := address.Parse(address.Last(path))
		if s.Name != name || s.Occurrence != 3 || s.Number() != 7 || len(s.Marks) != 3 {
			t.Errorf("%q is read as %+v", path, s)
		}
		if got := address.Place(path); got != address.Child("p", name, 3) {
			t.Errorf("the place of %q is %q", path, got)
		}
	})
}
