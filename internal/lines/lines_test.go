package lines

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadLimit(t *testing.T) {
	const limit = readBuffer + 10
	fits, over := strings.Repeat("a", limit-1), strings.Repeat("b", limit)
	in := fits + "\n" + over + "\n" + "c\n" + over + over + over + "\nd"
	var got []string
	for l, err := range Read(strings.NewReader(in), limit) {
		switch {
		case err != nil:
			t.Fatal(err)
		case l.Fault != "":
			got = append(got, fmt.Sprintf("line %d: %s", l.Number, l.Fault))
		default:
			got = append(got, string(l.Text))
		}
	}
	want := []string{fits, "line 2: longer than 262154 bytes", "c", "line 4: longer than 262154 bytes", "d"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
