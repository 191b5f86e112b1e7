package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/text"
	"golang.org/x/term"
)

// A column of a table. Its cells are on one line each.
type column struct {
	name  string
	right bool // aligned
	cells []string
}

// printTable prints columns side by side, but for those without anything in them.
// Lines are cut to a width, unless that is 0.
func printTable(w io.Writer, width int, columns []column) error {
	columns = slices.DeleteFunc(columns, func(c column) bool {
		return !slices.ContainsFunc(c.cells, func(cell string) bool { return cell != "" })
	})
	if len(columns) == 0 {
		return nil
	}
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = text.Width(c.name)
		for _, cell := range c.cells {
			widths[i] = max(widths[i], text.Width(cell))
		}
	}
	var b strings.Builder
	line := func(cell func(column) string) {
		var l strings.Builder
		for i, c := range columns {
			shown := cell(c)
			fill := strings.Repeat(" ", widths[i]-text.Width(shown))
			if c.right {
				shown = fill + shown
			} else {
				shown += fill
			}
			l.WriteString(shown + "  ")
		}
		shown := strings.TrimRight(l.String(), " ")
		if width > 0 {
			shown = text.Cut(shown, width)
		}
		fmt.Fprintln(&b, shown)
	}
	if slices.ContainsFunc(columns, func(c column) bool { return c.name != "" }) {
		line(func(c column) string { return c.name })
	}
	for row := range columns[0].cells {
		line(func(c column) string { return c.cells[row] })
	}
	_, err := io.WriteString(w, b.String())
	return err
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
