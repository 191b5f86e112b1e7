package cascade

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ways are the ways of routing, from the cheapest to the oracle.
func (r Report) ways() []way {
	b := r.Baselines
	return []way{
		{"small only", b.SmallOnly},
		{"random, same share", b.random(r.LargeShare)},
		{"cascade", r.Point},
		{"large only", b.LargeOnly},
		{"oracle", b.Oracle},
	}
}

type way struct {
	name string
	Point
}

// table is for a terminal.
func (r Report) table() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	rule := strings.Repeat("─", 72)
	line("%d questions: the small model first, the large one where the gate refuses\n", r.Questions)
	line("%-20s %10s %14s %14s %10s", "", "accuracy", "asked large", "gap recovered", "cost")
	line("%s", rule)
	for _, w := range r.ways() {
		mark := " "
		if w.name == "cascade" {
			mark = "▸"
		}
		line("%s %-18s %8.1f %% %12.1f %% %12.1f %% %10s", mark, w.name, 100*w.Accuracy, 100*w.LargeShare, 100*w.GapRecovered, fmt.Sprintf("$%.3f", w.CostUSD))
	}
	line("%s", rule)
	line("\nAnswers of the small model that the gate refused, by check (an answer may fail several):")
	for _, c := range checks {
		line("  %-22s %4d", c.name, r.Refused[c.name])
	}
	line("\n%d answers of the large model fail the gate too; they are kept, since no candidate is left.", r.Unsure)
	return b.String()
}

func (r Report) csv() string {
	var b strings.Builder
	b.WriteString("way,accuracy,large_share,gap_recovered,cost_usd\n")
	ways := r.ways()
	for _, p := range r.Baselines.Random {
		ways = append(ways, way{"random", p})
	}
	for _, w := range ways {
		fmt.Fprintf(&b, "%q,%.4f,%.4f,%.4f,%.4f\n", w.name, w.Accuracy, w.LargeShare, w.GapRecovered, w.CostUSD)
	}
	return b.String()
}

// write puts the table, the numbers and the plot into a directory.
func (r Report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "cascade.txt"), []byte(r.table()), 0o666),
		os.WriteFile(filepath.Join(dir, "cascade.csv"), []byte(r.csv()), 0o666),
		os.WriteFile(filepath.Join(dir, "cascade.svg"), []byte(r.plot()), 0o666),
	)
}
