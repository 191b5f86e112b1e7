package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
)

const (
	worse = 1.15 // a row may cost at most this multiple of its earlier cost
	sure  = 0.05 // a difference counts only if its p-value is below this
)

// errWorse means that one of Stone's rows has become worse.
var errWorse = errors.New("worse")

// against compares Stone's rows in two files of benchmark output. For each row it prints both medians, their ratio and the p-value
// of a Mann-Whitney test. It fails if a row is worse, as defined by the constants above, or is missing from after. Lower values
// are better in all units.
func against(before, after string, out io.Writer) error {
	was, err := readFile(before)
	if err != nil {
		return err
	}
	is, err := readFile(after)
	if err != nil {
		return err
	}
	return compare(was, is, out)
}

func readFile(name string) (*measured, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := read(f, io.Discard)
	if err == nil && len(m.failures) > 0 {
		err = fmt.Errorf("%s: a benchmark failed: %s", name, m.failures[0])
	}
	return m, err
}

func compare(was, is *measured, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "row\tbefore\tafter\tratio\tp\t\t")
	var bad []string
	compared := 0
	for _, key := range was.order {
		path, unit, _ := strings.Cut(key, " ")
		if !strings.HasSuffix(path, "/stone") {
			continue
		}
		after, ok := is.median(path, unit)
		if !ok {
			bad = append(bad, key+" (no figure)")
			continue
		}
		compared++
		before, _ := was.median(path, unit)
		p := difference(was.samples[key], is.samples[key])
		verdict := ""
		if after > worse*before && p < sure {
			verdict = "WORSE"
			bad = append(bad, key)
		}
		fmt.Fprintf(w, "%s\t%.4g\t%.4g\t%.2f\t%.3f\t%s\t\n", key, before, after, after/before, p, verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case len(bad) > 0:
		return fmt.Errorf("%w: %s", errWorse, strings.Join(bad, ", "))
	case compared == 0:
		return errors.New("nothing to compare: no row of Stone was measured")
	}
	return nil
}

// difference returns the p-value of a Mann-Whitney test that a and b have the same distribution.
func difference(a, b []float64) float64 {
	return benchmath.AssumeNothing.Compare(benchmath.NewSample(a, &benchmath.DefaultThresholds), benchmath.NewSample(b, &benchmath.DefaultThresholds)).P
}
