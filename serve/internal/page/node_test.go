package page

import (
	"fmt"
	"testing"
)

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

// The labels that order the turns of a conversation are not among those for people.
func TestWords(t *testing.T) {
	var r runRow
	r.Labels = map[string]string{"chat": "c", "chat-after": "0", "chat-message": "NFO", "chat-turn": "1", "team": "a"}
	if got := fmt.Sprint(r.Words()); got != "[team=a]" || r.Chat() != "c" {
		t.Error(got)
	}
	r.Labels = map[string]string{"chat-turn": "1"} // a user's own
	if got := fmt.Sprint(r.Words()); got != "[chat-turn=1]" {
		t.Error(got)
	}
}
