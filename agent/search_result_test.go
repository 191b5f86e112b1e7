package agent

import (
	"strings"
	"testing"
)

// Every place is listed, also close to another one.
func TestSearchListsAll(t *testing.T) {
	// "needle" at 0, at 50, and at 103: the context of the first ends at 106, within the third.
	text := "needle" + strings.Repeat(".", 44) + "needle" + strings.Repeat(".", 47) + "needle" + strings.Repeat(".", 500)
	got, err := reading{Search: "needle"}.of(text)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(got, "offset "); n != 3 {
		t.Errorf("%d of 3 places:\n%s", n, got)
	}
	if strings.Count(got, "needle") < 3 {
		t.Errorf("the third one is neither listed nor shown whole:\n%s", got)
	}
}
