package pattern_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/pattern"
	"pgregory.net/rapid"
)

func TestMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := rapid.SampledFrom([]string{"^a+$", "b", "(a|b)*c", "^$", "(?i)AB", `\bab\b`}).Draw(t, "pattern")
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abc é")), 0, 40, -1).Draw(t, "text")
		text = strings.Repeat(text, rapid.SampledFrom([]int{1, 5000}).Draw(t, "times"))
		p, err := pattern.Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Match(t.Context(), text)
		if want := regexp.MustCompile(expr).MatchString(text); err != nil || got != want {
			t.Fatalf("%q on %d bytes: %v, %v; want %v", expr, len(text), got, err, want)
		}
	})
}

// countdown ends after a number of checks.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestBounds(t *testing.T) {
	if _, err := pattern.Compile(strings.Repeat("ab", 6000)); err == nil || !strings.Contains(err.Error(), "instructions") {
		t.Errorf("12,000 instructions: %v", err)
	}
	p, err := pattern.Compile("(a?){900}b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Match(t.Context(), strings.Repeat("a", 7<<20)); err == nil || !strings.Contains(err.Error(), "too much work") {
		t.Errorf("7 MiB: %v", err)
	}
	ctx := &countdown{context.Background(), 3}
	if ok, err := p.Match(ctx, strings.Repeat("a", 100_000)); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ends: %v, %v", ok, err)
	}
	if ctx.left != -1 {
		t.Errorf("asked %d times after the end", -ctx.left-1)
	}
}
