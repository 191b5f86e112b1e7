package sandbox

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The buffer keeps the first and the last bytes for all sizes of writes.
func TestBufferKeepsBothEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Buffer{Max: rapid.IntRange(1, 40).Draw(t, "max")}
		var all strings.Builder
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 50), 0, 20).Draw(t, "writes") {
			piece := strings.Repeat(string(rune('a'+n%26)), n)
			all.WriteString(piece)
			if wrote, err := o.Write([]byte(piece)); wrote != n || err != nil {
				t.Fatal(wrote, err)
			}
			if kept := len(o.head) + len(o.tail); kept > 3*o.Max {
				t.Fatalf("keeps %d bytes for %d", kept, o.Max)
			}
		}
		want := all.String()
		if left := len(want) - o.Max; left > 0 {
			want = want[:o.Max/2] + "\n[" + strconv.Itoa(left) + " bytes are left out here]\n" + want[o.Max/2+left:]
		}
		if got := o.String(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
