package metrics

import (
	"fmt"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	var s Set
	s.Counter("a_total", "None yet.")
	c := s.Counter("b_total", "A \\ help.\nMore.", "name", "kind")
	c.Add(2, "x", `say "hi"\`+"\n")
	c.Add(0.5, "x", `say "hi"\`+"\n")
	c.Add(-1, "y", "\xff")
	h := s.Histogram("c_seconds", "Times.", []float64{0.1, 1}, "route")
	for _, v := range []float64{0.05, 0.1, 0.5, 7} {
		h.Observe(v, "r")
	}
	g := s.Gauge("d", "Now.")
	g.Set(Reading{Value: 3})
	s.Gauge("e", "Nothing.", "x").Set()
	want := `# HELP a_total None yet.
# TYPE a_total counter
a_total 0
# HELP b_total A \\ help.\nMore.
# TYPE b_total counter
b_total{name="x",kind="say \"hi\"\\\n"} 2.5
b_total{name="y",kind="` + "\uFFFD" + `"} 0
# HELP c_seconds Times.
# TYPE c_seconds histogram
c_seconds_bucket{route="r",le="0.1"} 2
c_seconds_bucket{route="r",le="1"} 3
c_seconds_bucket{route="r",le="+Inf"} 4
c_seconds_sum{route="r"} 7.65
c_seconds_count{route="r"} 4
# HELP d Now.
# TYPE d gauge
d 3
`
	if got := string(s.Text()); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// A metric has a bounded number of series.
func TestMost(t *testing.T) {
	var s Set
	c := s.Counter("a_total", "Many.", "id")
	for i := range most + 100 {
		c.Add(1, fmt.Sprint(i))
	}
	text := string(s.Text())
	if n := strings.Count(text, "a_total{"); n != most+1 || !strings.Contains(text, `a_total{id="other"} 100`) {
		t.Errorf("%d values:\n%s", n, text[len(text)-100:])
	}
}
