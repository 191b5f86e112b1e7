package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	none     = "–"
	noFigure = "no figure"
)

// print writes the table.
func (m *measured) print(out io.Writer, rows []row) error {
	least, most := m.repetitions()
	count := strconv.Itoa(most)
	if least != most {
		count = fmt.Sprintf("%d to %d", least, most)
	}
	cells := [][]string{{"#", "row", "stone", "floor", "ratio", "best peer", "its figure", "ratio", "hold", "met", "spread"}}
	number := 0
	for _, r := range rows {
		line, met := m.line(r)
		cells = append(cells, line)
		if met {
			number++
		}
	}
	_, err := fmt.Fprintf(out, "CPU time of the process (user and system), median of %s repetitions, on %s.\n\n%s\n%d of %d figures meet their bounds. Spread is the largest sample over the smallest, of stone or of the floor it is\ncompared with: if a figure is closer to its bound than that, measure on a quieter machine.\n",
		count, strings.Join(m.machine, ", "), align(cells), number, len(rows))
	return err
}

// line returns the cells of a row, and reports whether the row is within its bound.
func (m *measured) line(r row) (line []string, met bool) {
	line = []string{strconv.Itoa(r.number), r.title, none, none, none, none, none, none, r.hold.words, noFigure, none}
	stone, ok := m.median(r.path+"/stone", r.unit)
	if !ok {
		return line, false
	}
	line[2] = figure(stone, r.unit)
	spread := m.spread(r.path+"/stone", r.unit)
	switch r.hold.of {
	case smallStep, eventOf1KB:
		spread = max(spread, m.spread(r.hold.of, step))
	case floor:
		spread = max(spread, m.spread(cmp.Or(r.beside, r.path)+"/"+floor, r.unit))
	}
	line[10] = times(spread)

	// A row that is compared with another of Stone's rows measures growth. The floor and the peers are shown in the compared rows.
	against, known := 1.0, true
	switch r.hold.of {
	case "", floor:
		against, known = m.compare(line, stone, r)
	case smallStep, eventOf1KB:
		m.compare(line, stone, r)
		if against, known = m.median(r.hold.of, step); known {
			line[3], line[4] = figure(against, step), times(stone/against)
		}
	default:
		if against, known = m.median(r.hold.of+"/stone", r.unit); known {
			line[4] = times(stone / against)
		}
	}
	if !known {
		return line, false
	}
	met = stone <= r.hold.atMost*against
	line[9] = map[bool]string{true: "yes", false: "NO"}[met]
	return line, met
}

// compare adds the floor and the best peer to line. It returns the value that the row's bound is a multiple of: the floor, or one
// unit.
func (m *measured) compare(line []string, stone float64, r row) (against float64, known bool) {
	beside := cmp.Or(r.beside, r.path)
	bare, hasFloor := m.median(beside+"/"+floor, r.unit)
	if hasFloor {
		line[3], line[4] = figure(bare, r.unit), times(stone/bare)
	}
	if name, peer, ok := m.best(beside, r.unit); ok {
		line[5], line[6], line[7] = name, figure(peer, r.unit), times(stone/peer)
	}
	if r.hold.of == floor {
		return bare, hasFloor
	}
	return 1, true
}

// missing returns an error that names the first row without a value.
func (m *measured) missing(rows []row) error {
	for _, r := range rows {
		if line, _ := m.line(r); line[9] == noFigure {
			return fmt.Errorf("row %q has no figure: run the benchmark %s of stone and, if it is compared with one, its floor", r.title, r.path)
		}
	}
	return nil
}

// figure formats a value in its usual unit.
func figure(v float64, unit string) string {
	switch {
	case strings.HasPrefix(unit, "cpu-ns/") && v < 100:
		return fmt.Sprintf("%.1f ns", v)
	case strings.HasPrefix(unit, "cpu-ns/"), unit == passes:
		return fmt.Sprintf("%.2f µs", v/1e3)
	case unit == "elapsed-s/resume":
		return fmt.Sprintf("%.2f s", v)
	case unit == "file-B/step":
		return fmt.Sprintf("%.0f B", v)
	case unit == "peak-MB":
		return fmt.Sprintf("%.2f GB", v/1e3)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func times(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) + " ×" }

// align pads cells to form columns, with words aligned left and numbers aligned right.
func align(cells [][]string) string {
	right := map[int]bool{0: true, 2: true, 3: true, 4: true, 6: true, 7: true, 10: true}
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, c := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var out strings.Builder
	for _, line := range cells {
		var b strings.Builder
		for i, c := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if right[i] {
				b.WriteString(pad + c + "  ")
			} else {
				b.WriteString(c + pad + "  ")
			}
		}
		out.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
	return out.String()
}
