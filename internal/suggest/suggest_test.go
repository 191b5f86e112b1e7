package suggest

import (
	"slices"
	"testing"
)

func TestClosest(t *testing.T) {
	known := []string{"ticket", "triage", "Reply", "größe", "x", "max-tokens", "max-steps", "description"}
	tests := []struct{ name, want string }{
		{"tickets", "ticket"},
		{"tikcet", "ticket"}, // swapped
		{"TRIAGE", "triage"},
		{"reply", "Reply"},
		{"grösse", "größe"},
		{"ticket", ""}, // it exists, so it needs no suggestion
		{"invoice", ""},
		{"", "x"},
		{"y", "x"},
		{"desc", "description"},
		{"de", ""},
		{"max-", ""}, // of two
	}
	for _, tt := range tests {
		if got := Closest(tt.name, slices.Values(known)); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
