package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestCompare: a row is worse if it costs more than 15 % more, and not by chance.
func TestCompare(t *testing.T) {
	before := []float64{100, 101, 102, 103, 104, 105}
	for _, c := range []struct {
		name  string
		row   string
		was   []float64
		is    []float64
		worse bool
	}{
		{"equal", "A/stone", before, before, false},
		{"a constant", "A/stone", []float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, false},
		{"no allocation", "A/stone", []float64{0, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0}, false},
		{"the first allocation", "A/stone", []float64{0, 0, 0, 0, 0}, []float64{1, 1, 1, 1, 1}, true},
		{"14 % more", "A/stone", before, scaled(before, 1.14), false},
		{"16 % more", "A/stone", before, scaled(before, 1.16), true},
		{"better", "A/stone", before, scaled(before, 0.5), false},
		{"a peer", "A/eino", before, scaled(before, 2), false},
		{"too few samples", "A/stone", before[:3], scaled(before[:3], 2), false},
		{"too much noise", "A/stone", []float64{50, 300, 60, 280, 100, 90}, []float64{70, 310, 120, 290, 130, 40}, false},
		{"gone", "A/stone", before, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			was, is := rounds(t, c.row, c.was), rounds(t, c.row, c.is)
			for _, m := range []*measured{was, is} { // so that something is compared
				m.order = append(m.order, "Other/stone x")
				m.samples["Other/stone x"] = before
			}
			var out strings.Builder
			if err := compare(was, is, &out); errors.Is(err, errWorse) != c.worse || !c.worse && err != nil {
				t.Errorf("error %v, want worse %t\n%s", err, c.worse, &out)
			}
		})
	}
	if err := compare(rounds(t, "A/eino", before), rounds(t, "A/eino", before), io.Discard); err == nil {
		t.Error("no error, and nothing was compared")
	}
}

func scaled(list []float64, by float64) (out []float64) {
	for _, v := range list {
		out = append(out, v*by)
	}
	return out
}

// rounds returns what is read from a benchmark run once for each figure.
func rounds(t *testing.T, row string, figures []float64) *measured {
	t.Helper()
	var b strings.Builder
	for _, v := range figures {
		fmt.Fprintf(&b, "Benchmark%s-2 \t 10 \t %g cpu-ns/step\n", row, v)
	}
	m, err := read(strings.NewReader(b.String()), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
