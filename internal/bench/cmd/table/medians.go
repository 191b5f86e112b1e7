package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// medians prints the medians of all benchmarks in a table that has a column for each unit and no bounds.
func medians(in io.Reader, out, progress io.Writer) error {
	m, err := read(in, progress)
	if err != nil {
		return err
	}
	var paths, units []string
	for _, key := range m.order {
		path, unit, _ := strings.Cut(key, " ")
		unit, _, _ = strings.Cut(unit, "/")
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
		if !slices.Contains(units, unit) && unit != "ns" {
			units = append(units, unit)
		}
	}
	slices.Sort(units)
	header := []string{"benchmark"}
	for _, unit := range units {
		header = append(header, strings.ReplaceAll(unit, "-ns", "-µs"))
	}
	cells := [][]string{header}
	for _, path := range paths {
		line := []string{path}
		for _, unit := range units {
			v, ok := m.median(path, unit)
			for _, of := range []string{"/step", "/lane"} {
				if !ok {
					v, ok = m.median(path, unit+of)
				}
			}
			switch {
			case !ok:
				line = append(line, none)
			case strings.HasSuffix(unit, "-ns"):
				line = append(line, strconv.FormatFloat(v/1e3, 'f', 0, 64))
			case v >= 100:
				line = append(line, strconv.FormatFloat(v, 'f', 0, 64))
			default:
				line = append(line, strconv.FormatFloat(v, 'f', 2, 64))
			}
		}
		cells = append(cells, line)
	}
	least, most := m.repetitions()
	_, err = fmt.Fprintf(out, "A step or a lane, medians of %d to %d rounds, on %s.\n\n%s", least, most, strings.Join(m.machine, ", "), align(cells))
	if err == nil && len(m.failures) > 0 {
		err = fmt.Errorf("go test failed, see above; its first complaint: %s", m.failures[0])
	}
	return err
}
