package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/export"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// ran makes a step that ran from one second to another.
func ran(path string, from, to int, usage budget.Usage) journal.Step {
	return journal.Step{Path: path, Kind: "leaf", Attempts: 1, Recorded: true, Usage: usage,
		Started: start.Add(time.Duration(from) * time.Second), Ended: start.Add(time.Duration(to) * time.Second)}
}

var run = journal.RunInfo{ID: "r1", Pipeline: "p", Started: start, Outcome: journal.Outcome{Ended: start.Add(10 * time.Second)}}

var steps = []journal.Step{
	{Path: "input", Kind: "input", Started: start, Ended: start},
	ran("p/fix", 0, 10, budget.Usage{}),
	ran("p/fix/turn-1", 0, 4, budget.Usage{InputTokens: 1000, OutputTokens: 10, USD: 0.25}),
	ran("p/fix/turn-2", 4, 6, budget.Usage{InputTokens: 2000, OutputTokens: 10, USD: 0.5}),
	ran("p/each[0]/work", 0, 3, budget.Usage{USD: 0.000001}),
	ran("p/each[1]/work", 1, 3, budget.Usage{USD: 0.000001}),
}

func each(steps []journal.Step) iter.Seq2[journal.Step, error] {
	return func(yield func(journal.Step, error) bool) {
		for _, s := range steps {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func TestChrome(t *testing.T) {
	var file bytes.Buffer
	if err := export.Chrome(&file, run, each(steps)); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Events []struct {
			Name string
			Ph   string
			Ts   int64
			Dur  int64
			Tid  int
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(file.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, file.Bytes())
	}
	var lines []string
	for _, e := range got.Events {
		if e.Ph == "X" {
			lines = append(lines, fmt.Sprintf("%s %d+%d on %d", e.Name, (e.Ts-start.UnixMicro())/1e6, e.Dur/1e6, e.Tid))
		}
	}
	want := "fix 0+10 on 1, turn-1 0+4 on 1, work 0+3 on 2, work 1+2 on 3, turn-2 4+2 on 1"
	if s := strings.Join(lines, ", "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

func ExampleChrome() {
	db, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	info, err := db.Find(context.Background(), "nightly")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := export.Chrome(os.Stdout, info, db.EachStep(context.Background(), info.ID)); err != nil {
		fmt.Println(err)
	}
	// Output: run "nightly": no such run: list the runs to see their names
}
