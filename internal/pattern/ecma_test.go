package pattern_test

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/pattern"
)

func TestECMA(t *testing.T) {
	for _, c := range []struct {
		pattern, fits, not string
	}{
		{`^(?!\.)[a-z]+$`, "abc", ".abc"},
		{`^(?=.*\d)(?=.*[a-z]).{4,}$`, "ab12", "abcd"},
		{`^(a|b)\1$`, "aa", "ab"},
		{`^A\u00e9$`, "Aé", "Ae"},
		{`(?<!x)y`, "ay", "xy"},
		{`^[\w-]+@[\w.]+$`, "a-b@c.d", "a b"}, // package regexp knows it
		{`^\p{Letter}+$`, "Zürich", "42"},
		{`^\cJ$`, "\n", "J"},
	} {
		p, err := pattern.CompileECMA(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if p.String() != c.pattern {
			t.Errorf("%s: its text is %s", c.pattern, p)
		}
		for text, want := range map[string]bool{c.fits: true, c.not: false} {
			if got, err := p.Match(t.Context(), text); err != nil || got != want {
				t.Errorf("%s on %q: %v, %v; want %v", c.pattern, text, got, err, want)
			}
		}
	}
	for _, bad := range []string{"(", "(?!a", "(?!" + strings.Repeat("a", 5000) + ")", strings.Repeat("ab", 6000)} {
		if _, err := pattern.CompileECMA(bad); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20s: %v", bad, err)
		}
	}
}

// TestECMABounds matches patterns whose backtracking takes exponential time.
func TestECMABounds(t *testing.T) {
	p, err := pattern.CompileECMA(`^(?=a)(a+)+$`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Match(t.Context(), strings.Repeat("a", 60)+"b"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("exponential: %v", err)
	}
	if _, err := p.Match(t.Context(), strings.Repeat("a", 2<<20)); err == nil {
		t.Error("2 MiB are matched")
	}
}
