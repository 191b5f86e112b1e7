package cli

import (
	"bufio"
	"io"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/text"
	"golang.org/x/term"
)

// A table consists of rows of cells. A column whose name begins with ">" is right-aligned.
type table struct {
	names []string
	rows  [][]string
	lines int // maximum lines in a row's last cell; 0 means any number
}

func newTable(names ...string) *table { return &table{names: names} }

// add adds a row. Trailing cells may be omitted.
func (t *table) add(cells ...string) {
	t.rows = append(t.rows, append(cells, make([]string, len(t.names)-len(cells))...))
}

// print prints the columns side by side and omits empty ones. If width is not 0, lines are fitted to it: the last column, usually
// a reason, is wrapped, and lines that are still too long are cut.
func (t *table) print(w io.Writer, width int) error {
	head := make([]string, len(t.names))
	widths := make([]int, len(t.names)) // 0 for an omitted column
	for i, name := range t.names {
		head[i] = strings.TrimPrefix(name, ">")
		for _, row := range t.rows {
			widths[i] = max(widths[i], text.Width(row[i]))
		}
		if widths[i] > 0 {
			widths[i] = max(widths[i], text.Width(head[i]))
		}
	}
	out := bufio.NewWriter(w) // Flush reports errors
	for n := -1; n < len(t.rows); n++ {
		row := head
		if n >= 0 {
			row = t.rows[n]
		}
		line, last := "", len(row)-1
		for i, cell := range row {
			if widths[i] == 0 {
				continue
			}
			if n >= 0 && i == last && width > 0 && t.names[i] == head[i] {
				line = t.fold(line, cell, width)
				continue
			}
			fill := strings.Repeat(" ", widths[i]-text.Width(cell))
			if t.names[i] != head[i] {
				line += fill + cell + "  "
			} else {
				line += cell + fill + "  "
			}
		}
		for part := range strings.SplitSeq(line, "\n") {
			if part = strings.TrimRight(part, " "); width > 0 {
				part = text.Cut(part, width)
			}
			if part != "" {
				_, _ = out.WriteString(part + "\n")
			}
		}
	}
	return out.Flush()
}

// fold returns a row's line with the last cell appended. The cell is wrapped in its column, or placed below the line if the
// column is too narrow.
func (t *table) fold(line, cell string, width int) string {
	least := min(32, width/2) // width in characters
	before := text.Width(line)
	if before+text.Width(cell) <= width {
		return line + cell
	}
	if width-before < least {
		before = min(len(line)-len(strings.TrimLeft(line, " "))+2, width/2)
		line += "\n" + strings.Repeat(" ", before)
	}
	parts := text.Fold(cell, max(width-before, 1))
	if t.lines > 0 && len(parts) > t.lines {
		parts = parts[:t.lines]
		parts[t.lines-1] = text.Cut(parts[t.lines-1]+"…", width-before)
	}
	return line + strings.Join(parts, "\n"+strings.Repeat(" ", before))
}

// print prints v as JSON if --json is set, and otherwise a table. If width is not 0, the table is fitted to it.
func (a *app) print(v any, t *table, width int) error {
	if a.json {
		return output(printJSON(a.Stdout, v))
	}
	return output(t.print(a.Stdout, width))
}

// columns returns the width of the terminal at standard output, or 0 if standard output is not a terminal.
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

// moment returns a time as text, as briefly as possible relative to now, or "" for the zero time.
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

// took returns the time between start and end as text, or "" if either is unknown.
func took(started, ended time.Time) string {
	if started.IsZero() || ended.IsZero() {
		return ""
	}
	return progress.Duration(max(ended.Sub(started), 0))
}

func tokens(u budget.Usage) string { return text.Amount(u.Tokens()) }

func cost(u budget.Usage) string { return money.USD(u.USD, u.Estimated) }

// total returns, as text, the cost of a run and the cost that may have been billed in addition.
func total(t budget.Total) string { return money.Cost(t.USD, t.Estimated, t.Possible.USD) }
