package eval_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/eval"
)

func ExampleRun() {
	type letter struct {
		Text string `json:"text"`
	}
	var (
		Letter = dag.NewType[letter]("letter")
		Area   = dag.NewType[string]("area")
	)
	sort := stone.Func("sort", Letter, Area, func(_ context.Context, l letter) (string, error) {
		if strings.Contains(l.Text, "invoice") {
			return "billing", nil
		}
		return "bug", nil
	})
	scorers, err := eval.Read(nil, "exact")
	if err != nil {
		panic(err)
	}
	report, err := eval.Run(context.Background(), eval.Config{
		Pipeline: sort,
		Scorers:  scorers,
		Data: eval.Data{Rows: []any{
			map[string]string{"text": "My invoice is missing.", "expected": "billing"},
			map[string]string{"text": "The page is blank.", "expected": "bug"},
			map[string]string{"text": "You charged me twice.", "expected": "billing"},
		}},
	}, stone.Config{})
	if err != nil {
		panic(err)
	}
	s := report.Scores[0]
	fmt.Printf("%s: %.2f of %d, 95 %% between %.2f and %.2f\n", s.Name, s.Mean, s.N, s.Low, s.High)
	// Output: exact: 0.67 of 3, 95 % between 0.21 and 0.94
}
