package serve_test

import (
	"fmt"
	"strings"
	"testing"
)

// What callers keep with runs is small, since every list repeats it.
func TestBoundsOfWords(t *testing.T) {
	h := newHouse(t, nil)
	start := func(labels string) string {
		return `{"pipeline":"page","input":{"text":"slate"},"labels":{` + labels + `}}`
	}
	var many []string
	for i := range 16 {
		many = append(many, fmt.Sprintf(`"%064d":"%s"`, i, strings.Repeat("x", 512)))
	}
	h.want("PUT", "/v1/runs/a", start(strings.Join(many, ",")), 201, "")
	for labels, part := range map[string]string{
		strings.Join(append(many, `"q":""`), ","):      "17 labels: want at most 16",
		`"a":"` + strings.Repeat("x", 7_500_000) + `"`: `the label \"a\" has a value of 7500000 bytes: want at most 512`,
		`"` + strings.Repeat("n", 65) + `":""`:         "has a name of 65 bytes: want at most 64",
	} {
		h.want("PUT", "/v1/runs/b", start(labels), 400, part)
		h.want("POST", "/v1/runs", start(labels), 400, part)
	}
	h.want("PUT", "/v1/runs/"+strings.Repeat("i", 101), start(""), 400, "the id has 101 bytes: want at most 100")
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 202, `"state":"waiting"`)
	answer := `{"question":"ok","response":"` + strings.Repeat("y", 1<<20+1) + `"}`
	h.want("POST", "/v1/runs/a/answers", answer, 400, "the response has 1048577 bytes: want at most 1048576")
	if status, text := h.do("GET", "/v1/runs", ""); strings.Count(text, `"id"`) != 1 {
		t.Errorf("runs: %d %.500s, want only the one that was not refused", status, text)
	}
}
