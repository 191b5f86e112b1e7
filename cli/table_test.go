package cli

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/text"
)

func TestTable(t *testing.T) {
	table := newTable("NAME", ">N", "NONE", "WHY")
	table.add("a", "1")
	table.add("名前", "1000", "", "it was so")
	for width, want := range map[int]string{
		0:  "NAME     N  WHY\na        1\n名前  1000  it was so\n",
		15: "NAME     N  WHY\na        1\n名前  1000  it…\n",
		4:  "NAM…\na  …\n名…\n",
	} {
		var got strings.Builder
		if err := table.print(&got, width); err != nil || got.String() != want {
			t.Errorf("width %d: %v\n%s\nwant\n%s", width, err, got.String(), want)
		}
	}
	if err := newTable("NAME").print(io.Discard, 0); err != nil {
		t.Error(err)
	}
}

func TestShownValues(t *testing.T) {
	now := time.Date(2026, 11, 21, 13, 0, 0, 0, time.Local)
	for _, test := range []struct{ got, want string }{
		{moment(time.Time{}, now), ""},
		{moment(now.Add(-time.Hour), now), "12:00"},
		{moment(now.Add(-24*time.Hour), now), "Nov 20"},
		{moment(now.AddDate(-1, 0, 0), now), "2025-11-21"},
		{took(now, time.Time{}), ""},
		{took(now, now.Add(-time.Minute)), took(now, now)}, // a clock that was set back
		{amount(0), ""},
		{amount(9999), "9999"},
		{amount(12_345), "12.3k"},
		{amount(999_999), "999k"},
		{amount(1_234_567), "1.2M"},
		{quoted("stone.db"), "stone.db"},
		{quoted(""), "''"},
		{quoted("it's $HOME"), `'it'\''s $HOME'`},
		{total(budget.Total{}), ""},
		{total(budget.Total{Usage: budget.Usage{USD: 1.24}}), "1.24"},
		{total(budget.Total{Usage: budget.Usage{USD: 1.24, Estimated: true}, Possible: budget.Possible{Attempts: 3, USD: 1.53}}), "~1.24, possibly 1.53 more"},
		{total(budget.Total{Possible: budget.Possible{Attempts: 3, USD: 1.53}}), "possibly 1.53"},
		{text.Plural(1, "run"), "1 run"},
		{text.Plural(2, "run"), "2 runs"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

func TestAge(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"12h": 12 * time.Hour, "30d": 30 * 24 * time.Hour, "1.5d": 36 * time.Hour,
		"": 0, "d": 0, "-1d": 0, "0h": 0, "yesterday": 0,
	} {
		var a age
		if err := a.Set(text); (err == nil) != (want > 0) || time.Duration(a) != want {
			t.Errorf("%q: %v, %v; want %v", text, time.Duration(a), err, want)
		}
	}
}
