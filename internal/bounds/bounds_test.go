package bounds

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestBounds(t *testing.T) {
	many := func(n int) map[string]string {
		labels := map[string]string{}
		for i := range n {
			labels[fmt.Sprint(i)] = "x"
		}
		return labels
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		err  error
		want string // part of the error; empty for none
	}{
		{CheckLabels(nil), ""},
		{CheckLabels(many(16)), ""},
		{CheckLabels(many(17)), "17 labels: want at most 16"},
		{CheckLabels(map[string]string{long(64): long(512)}), ""},
		{CheckLabels(map[string]string{long(65): ""}), "a name of 65 bytes: want at most 64"},
		{CheckLabels(map[string]string{"a": long(513)}), `the label "a" has a value of 513 bytes: want at most 512`},
		{CheckRun(long(512), many(20)), ""},
		{CheckRun("p", many(21)), "21 labels: want at most 20"},
		{CheckRun(long(513), nil), "has 513 bytes: want at most 512"},
		{CheckID(long(512)), ""},
		{CheckID(long(513)), "has 513 bytes: want at most 512"},
		{CheckQuestion("p/a", long(Question-2)), ""}, // and two quotes
		{CheckQuestion("p/a", long(Question)), "the question at p/a has 1048578 bytes"},
		{CheckAsked("the run", 9999), ""},
		{CheckAsked("the run", 10_000), "the run has 10000 open questions: want fewer than 10000"},
		{CheckResponse(long(Response)), ""},
		{CheckResponse(long(Response + 1)), "the response has 1048577 bytes: want at most 1048576"},
	} {
		switch {
		case c.want == "" && c.err != nil:
			t.Errorf("%v, want none", c.err)
		case c.want != "" && (!errors.As(c.err, new(*Error)) || !strings.Contains(c.err.Error(), c.want)):
			t.Errorf("%v, want %q", c.err, c.want)
		case c.err != nil && len(c.err.Error()) > 400:
			t.Errorf("an error of %d bytes", len(c.err.Error()))
		}
	}
}

func TestCut(t *testing.T) {
	for n, want := range map[int]string{0: "…", 1: "…", 2: "ż…", 3: "ż…", 4: "żó…", 6: "żół…", 7: "żółw", 9: "żółw"} {
		if got := Cut("żółw", n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
