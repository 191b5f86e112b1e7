package page

import "testing"

func TestAllowance(t *testing.T) {
	left := allowance(5)
	if a, b := left.take("ab€"), left.take("x"); a != "ab€" || b != "" {
		t.Errorf("got %q, %q", a, b)
	}
	if left = 4; left.take("ab€") != "ab" {
		t.Error("a character was cut in two")
	}
}

func TestDifference(t *testing.T) {
	got := ""
	for _, l := range difference("a\nb\nc\nd", "a\nx\ny\nd") {
		got += l.Sign + l.Text + ";"
	}
	if want := " a;-b;-c;+x;+y; d;"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
