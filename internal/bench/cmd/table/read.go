package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// measured holds the parsed output of go test -bench.
type measured struct {
	machine  []string // goos, goarch and cpu
	samples  map[string][]float64
	order    []string // paths of the benchmarks in the order in which they ran
	failures []string
}

var cpus = regexp.MustCompile(`-\d+$`)

// read reads the samples from the output of one or several runs of go test -bench. It copies the output to progress, to show how
// far the benchmarks are.
func read(in io.Reader, progress io.Writer) (*measured, error) {
	m := &measured{samples: map[string][]float64{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		fmt.Fprintln(progress, line)
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case strings.HasPrefix(line, "goos:"), strings.HasPrefix(line, "goarch:"), strings.HasPrefix(line, "cpu:"):
			_, value, _ := strings.Cut(line, ": ")
			if !slices.Contains(m.machine, value) { // each round repeats these lines
				m.machine = append(m.machine, value)
			}
		case strings.HasPrefix(line, "--- FAIL: "):
			m.failures = append(m.failures, fields[2])
		case strings.HasPrefix(line, "panic:"), fields[0] == "FAIL":
			m.failures = append(m.failures, strings.TrimSpace(line))
		case strings.HasPrefix(line, "Benchmark") && len(fields) >= 4:
			if err := m.add(fields); err != nil {
				return nil, fmt.Errorf("line %q: %w", line, err)
			}
		}
	}
	return m, lines.Err()
}

// add parses a line of results: the name, the number of iterations, and then pairs of value and unit.
func (m *measured) add(fields []string) error {
	path := strings.TrimPrefix(cpus.ReplaceAllString(fields[0], ""), "Benchmark")
	for pair := range slices.Chunk(fields[2:], 2) {
		if len(pair) < 2 {
			return fmt.Errorf("value %s without a unit", pair[0])
		}
		v, err := strconv.ParseFloat(pair[0], 64)
		if err != nil {
			return err
		}
		key := path + " " + pair[1]
		if m.samples[key] == nil {
			m.order = append(m.order, key)
		}
		m.samples[key] = append(m.samples[key], v)
	}
	return nil
}

// median returns the median of a benchmark's samples in a unit.
func (m *measured) median(path, unit string) (float64, bool) {
	s := slices.Sorted(slices.Values(m.samples[path+" "+unit]))
	if len(s) == 0 {
		return 0, false
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2, true
}

// spread returns the ratio of the largest sample to the smallest. It is 1 if all samples are equal.
func (m *measured) spread(path, unit string) float64 {
	s := m.samples[path+" "+unit]
	if len(s) == 0 || slices.Max(s) == slices.Min(s) {
		return 1
	}
	return slices.Max(s) / slices.Min(s)
}

// best returns the peer with the smallest median among the benchmarks below path. All libraries except Stone and the floor are
// peers.
func (m *measured) best(path, unit string) (name string, figure float64, ok bool) {
	for _, key := range m.order {
		rest, below := strings.CutPrefix(key, path+"/")
		who, u, _ := strings.Cut(rest, " ")
		if !below || u != unit || who == "stone" || who == floor || strings.Contains(who, "/") {
			continue
		}
		if v, _ := m.median(path+"/"+who, unit); !ok || v < figure {
			name, figure, ok = who, v, true
		}
	}
	return name, figure, ok
}

// repetitions returns the smallest and the largest number of samples that any benchmark has.
func (m *measured) repetitions() (least, most int) {
	for _, s := range m.samples {
		if least == 0 || len(s) < least {
			least = len(s)
		}
		most = max(most, len(s))
	}
	return least, most
}
