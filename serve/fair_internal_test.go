package serve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/journal"
)

// Runs are due in the order of the words, which are tenant and priority. The words say in which order they are resumed.
func TestFair(t *testing.T) {
	for _, c := range []struct{ due, want string }{
		{"a0 a0 a0 b0 c0", "a0 b0 c0 a0 a0"},
		{"a0 a5 b0 b1 a-1", "a5 b1 a0 b0 a-1"},
		{"a0 a0 a0", "a0 a0 a0"},
		{"", ""},
	} {
		var due []dueRun
		for i, word := range strings.Fields(c.due) {
			src := source{Published: "p"}
			fmt.Sscan(word[1:], &src.Priority)
			text, err := json.Marshal(src)
			if err != nil {
				t.Fatal(err)
			}
			info := journal.RunInfo{ID: word, Source: text, Started: time.Unix(int64(i), 0), Labels: map[string]string{tenantLabel: word[:1]}}
			due = append(due, dueRun{RunInfo: info})
		}
		var got []string
		for _, d := range fair(due) {
			got = append(got, d.ID)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %s, want %s", c.due, strings.Join(got, " "), c.want)
		}
	}
}
