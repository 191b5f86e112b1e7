package cli

import (
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

func TestTable(t *testing.T) {
	table := newTable("NAME", ">N", "NONE", "WHY")
	table.add("a", "1")
	table.add("名前", "1000", "", "it was so")
	for width, want := range map[int]string{
		0:  "NAME     N  WHY\na        1\n名前  1000  it was so\n",
		15: "NAME     N  WHY\na        1\n名前  1000\n  it was so\n",
		4:  "NAM…\na  …\n名…\n  it\n  wa\n  s\n  so\n",
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

// A failure's reason shows in a terminal of any usual width.
func TestNarrowTables(t *testing.T) {
	started := time.Date(2025, 11, 21, 13, 0, 0, 0, time.Local)
	failed := journal.Outcome{State: journal.Failed, Failure: &journal.Failure{Kind: "timeout", Path: "docs/each[3]/read", Reason: "the archive did not answer within ten seconds, three times in a row"}}
	runs := newRunTable()
	addRun(runs, journal.RunInfo{ID: "nightly-archive", Pipeline: "docs", Started: started, Outcome: failed}, started)
	tree := newTreePrinter(&view.Run{}, true, 60)
	tree.row("    ✗ read", "0badcafe", "30.0s", "", "", "the archive did not answer within ten seconds")
	for _, test := range []struct {
		table *table
		width int
		want  string
	}{
		{runs, 120, `
RUN              PIPELINE  STATE   STARTED  FAILURE
nightly-archive  docs      failed  13:00    timeout at docs/each[3]/read: the archive did not answer within ten seconds,
                                            three times in a row
`},
		{runs, 60, `
RUN              PIPELINE  STATE   STARTED  FAILURE
nightly-archive  docs      failed  13:00
  timeout at docs/each[3]/read: the archive did not answer
  within ten seconds, three times in a row
`},
		{runs, 40, `
RUN              PIPELINE  STATE   STAR…
nightly-archive  docs      failed  13:00
  timeout at docs/each[3]/read: the
  archive did not answer within ten
  seconds, three times in a row
`},
		{tree.table, 60, `
STEP        NODE      DURATION  NOTE
    ✗ read  0badcafe     30.0s
      the archive did not answer within ten seconds
`},
		{tree.table, 40, `
STEP        NODE      DURATION  NOTE
    ✗ read  0badcafe     30.0s
      the archive did not answer within
      ten seconds
`},
	} {
		var got strings.Builder
		if err := test.table.print(&got, test.width); err != nil || "\n"+got.String() != test.want {
			t.Errorf("width %d: %v\n%s\nwant%s", test.width, err, got.String(), test.want)
		}
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
		{text.Amount(0), ""},
		{text.Amount(9999), "9999"},
		{text.Amount(12_345), "12.3k"},
		{text.Amount(999_999), "999k"},
		{text.Amount(1_234_567), "1.2M"},
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

func TestFullDisk(t *testing.T) {
	const advice = ": the disk is full: free some space, then try again"
	for _, tt := range []struct{ line, want string }{
		{"write d.json: " + syscall.ENOSPC.Error(), "write d.json: " + syscall.ENOSPC.Error() + advice},
		{"index i.db: database or disk is full (13)", "index i.db: database or disk is full (13)" + advice},
		{"database s.db has no space left: free some space on its disk: database or disk is full (13)", "database s.db has no space left: free some space on its disk: database or disk is full (13)"},
		{"no such run", "no such run"},
	} {
		var got strings.Builder
		(&app{Config: Config{Stderr: &got}}).complain("%s", tt.line)
		if got.String() != tt.want+"\n" {
			t.Errorf("%q: got %q, want %q", tt.line, got.String(), tt.want)
		}
	}
}

func TestMeantTimes(t *testing.T) {
	for _, tt := range []struct{ text, age, duration string }{
		{"2 hours", "2h", "2h"}, {"90", "90d", "90s"}, {"3weeks", "21d", "504h"}, {"10 mins", "10m", "10m"}, {"2 months ago", "60d", "1440h"},
		{"Yesterday", "1d", "24h"}, {"5x", "", ""}, {"soon", "", ""}, {"0h", "", ""},
	} {
		for unit, want := range map[string]string{"d": tt.age, "s": tt.duration} {
			if want != "" {
				want = ": did you mean " + want + "?"
			}
			if got := meantTime(tt.text, unit); got != want {
				t.Errorf("%q in %s: got %q, want %q", tt.text, unit, got, want)
			}
		}
	}
}

func TestSince(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2026-11-28": time.Date(2026, 11, 28, 0, 0, 0, 0, time.Local), "2026-11-28T15:04": time.Date(2026, 11, 28, 15, 4, 0, 0, time.Local),
		"2026-11-28T15:04:05Z": time.Date(2026, 11, 28, 15, 4, 5, 0, time.UTC), "2d": time.Now().Add(-48 * time.Hour), "monday": {}, "2026-11-31": {},
	} {
		var got since
		if err := got.Set(text); (err == nil) == want.IsZero() || time.Time(got).Sub(want).Abs() > time.Minute {
			t.Errorf("%q: %v, %v; want %v", text, time.Time(got), err, want)
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
