package cascade

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestEvaluate(t *testing.T) {
	for _, test := range []struct{ expr, want string }{
		{"3", "3"},
		{" $1,200 ", "1200"},
		{"2+3*4", "14"},
		{"(2+3)*4", "20"},
		{"10 - 4 - 3", "3"},
		{"12/4/3", "1"},
		{"-3 + 5", "2"},
		{"2 x 3", "6"},
		{"2 × 3 ÷ 4", "3/2"},
		{`2 \* 3`, "6"},
		{"50% * 8", "4"},
		{"(50)%", "1/2"},
		{"1.25", "5/4"},
		{".5", "1/2"},
		{"1/0", ""},
		{"1.2.3", ""},
		{"(1", ""},
		{"1)", ""},
		{"2 3", ""},
		{"2+", ""},
		{"", ""},
		{".", ""},
		{"apples", ""},
		{strings.Repeat("9", 41), ""},
		{strings.Repeat("(", 1<<20), ""},
	} {
		got := ""
		if v, ok := evaluate(test.expr); ok {
			got = v.RatString()
		}
		if got != test.want {
			t.Errorf("%.60q is %q, want %q", test.expr, got, test.want)
		}
	}
}

func TestChecks(t *testing.T) {
	for _, test := range []struct{ solution, want string }{ // the checks that reject it
		{"<<2*3=6>>6\n#### 6", ""},
		{"2 * 3 = $6.\n#### $6", ""},
		{"2 + 2 = 4, and 4 * 3 = 12 apples.\n#### 12", ""},
		{"10 / 3 = 3.33\nSo 4 - 1 = 3.\n#### 3", ""},
		{"1,000 + 500 = 1,500\n#### 1,500", ""},
		{"2 * 3 = 6", "sensible-number"},
		{"<<2*3=7>>7\n#### 7", "calculations-come-out"},
		{"2 * 3 = 6 = 5\n#### 5", "calculations-come-out"},
		{"<<2*3=6>>6\n#### 8", ""},
		{"It is six.\n#### 6", ""},
		{"3 - 5 = -2\n#### -2", "sensible-number"},
		{"7 / 2 = 3.5\n#### 3.5", "sensible-number"},
		{"1 / 8 = 0.125\n8 * 0.125 = 1\n#### 1", "sensible-number"},
	} {
		var refused []string
		for _, name := range slices.Sorted(maps.Keys(checks)) {
			if checks[name](test.solution) != nil {
				refused = append(refused, name)
			}
		}
		if got := strings.Join(refused, " "); got != test.want {
			t.Errorf("%q: rejected by %q, want %q", test.solution, got, test.want)
		}
	}
}

func FuzzChecks(f *testing.F) {
	f.Add("<<2*3=6>>6\n#### 6")
	f.Add("((((1)))) = 1% = --2 / (3-3)\n#### -.5")
	f.Fuzz(func(t *testing.T, solution string) {
		for name, check := range checks {
			if err := check(solution); err != nil && err.Error() == "" {
				t.Errorf("%s rejects without a reason", name)
			}
		}
	})
}
