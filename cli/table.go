package cli

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/text"
	"golang.org/x/term"
)

// A table has rows of cells, each on one line. A name that begins with ">" is that of a column aligned right.
type table struct {
	names []string
	rows  [][]string
}

func newTable(names ...string) *table { return &table{names: names} }

// add adds a row. Cells at its end may be left out.
func (t *table) add(cells ...string) {
	t.rows = append(t.rows, append(cells, make([]string, len(t.names)-len(cells))...))
}

// print prints the columns side by side, but for those without anything in them.
// Lines are cut to a width, unless that is 0.
func (t *table) print(w io.Writer, width int) error {
	head := make([]string, len(t.names))
	widths := make([]int, len(t.names)) // 0 for a column that is left out
	for i, name := range t.names {
		head[i] = strings.TrimPrefix(name, ">")
		for _, row := range t.rows {
			widths[i] = max(widths[i], text.Width(row[i]))
		}
		if widths[i] > 0 {
			widths[i] = max(widths[i], text.Width(head[i]))
		}
	}
	out := bufio.NewWriter(w) // Flush reports its errors
	for i := -1; i < len(t.rows); i++ {
		row := head
		if i >= 0 {
			row = t.rows[i]
		}
		line := ""
		for i, cell := range row {
			if widths[i] == 0 {
				continue
			}
			fill := strings.Repeat(" ", widths[i]-text.Width(cell))
			if t.names[i] != head[i] {
				line += fill + cell + "  "
			} else {
				line += cell + fill + "  "
			}
		}
		if line = strings.TrimRight(line, " "); width > 0 {
			line = text.Cut(line, width)
		}
		if line != "" {
			_, _ = out.WriteString(line + "\n")
		}
	}
	return out.Flush()
}

// print prints v as JSON with --json, and otherwise a table, cut to a width unless that is 0.
func (a *app) print(v any, t *table, width int) error {
	if a.json {
		return output(printJSON(a.Stdout, v))
	}
	return output(t.print(a.Stdout, width))
}

// columns returns the width of the terminal that standard output is, 0 if it is
// none.
func (a *app) columns() int {
	f := terminal(a.Stdout)
	if f == nil {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns < 1 {
		return 80
	}
	return columns
}

// moment tells a time as short as it can be told now.
func moment(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case t.IsZero():
		return ""
	case t.YearDay() == now.YearDay() && t.Year() == now.Year():
		return t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("Jan 2")
	}
	return t.Format(time.DateOnly)
}

// took tells how long something took, "" if one of its ends is not known.
func took(started, ended time.Time) string {
	if started.IsZero() || ended.IsZero() {
		return ""
	}
	return progress.Duration(max(ended.Sub(started), 0))
}

// amount tells a number with about three digits, "" for none.
func amount(n int) string {
	switch {
	case n == 0:
		return ""
	case n < 10_000:
		return strconv.Itoa(n)
	case n < 100_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

func tokens(u budget.Usage) string { return amount(u.Tokens()) }

func cost(u budget.Usage) string { return money.USD(u.USD, u.Estimated) }

// total prints the cost of a run with what may have been billed beside it.
func total(t budget.Total) string { return money.Cost(t.USD, t.Estimated, t.Possible.USD) }
