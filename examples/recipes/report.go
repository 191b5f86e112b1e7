package recipes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// Stats are the numbers of one night, by name, such as {"errors": 12}.
type Stats struct {
	Today     map[string]float64 `json:"today"`
	Yesterday map[string]float64 `json:"yesterday"`
}

var (
	Measured = dag.NewType[Stats]("stats")
	Compared = dag.NewType[string]("compared")
	Written  = dag.NewType[agent.Text]("report")
	Numbers  = dag.NewType[int]("numbers")
)

// Report writes the report of a night. All numbers are computed by code; a report that contains any other number is rejected.
func Report(m llm.Model) stone.Ashlar {
	return stone.Seq("report",
		stone.Func("compare", Measured, Compared, compare),
		agent.New("write", Written, m, agent.Config{
			System:    agent.Say("You write a report of at most five sentences. Take every number from the table as it stands, and compute none."),
			User:      agent.Prompt(Compared, func(table string) string { return table }),
			Adversary: stone.Func2("numbers", Compared, Written, Numbers, numbers),
		}),
	)
}

func compare(_ context.Context, s Stats) (string, error) {
	type line struct {
		Name                     string
		Today, Yesterday, Change float64
	}
	var table []line
	for _, name := range slices.Sorted(maps.Keys(s.Today)) {
		table = append(table, line{name, s.Today[name], s.Yesterday[name], s.Today[name] - s.Yesterday[name]})
	}
	text, err := json.MarshalIndent(table, "", " ")
	return string(text), err
}

var number = regexp.MustCompile(`\d+(\.\d+)?`)

// numbers returns how many numbers a report contains. It returns an error if one of them is not in the table.
func numbers(_ context.Context, table string, report agent.Text) (int, error) {
	known := map[float64]bool{}
	for _, n := range number.FindAllString(table, -1) {
		v, err := strconv.ParseFloat(n, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", n, err)
		}
		known[v] = true
	}
	found := number.FindAllString(report.Text, -1)
	for _, n := range found {
		if v, err := strconv.ParseFloat(n, 64); err != nil || !known[v] {
			return 0, stone.Fail(Unsupported, "the table has no number %s", n)
		}
	}
	return len(found), nil
}
