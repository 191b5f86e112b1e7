// Package cascade asks a small model first, and a large one if checks refuse the small
// one's answer, on questions that two real models answered before:
//
//	go run ./cmd/stone run ./examples/cascade -- --data responses.jsonl
//
// Both are capabilities for one intent. A gate of checks decides. The checks know
// neither the right answer nor the question: whether a solution ends in an answer,
// whether its sums are right, whether the answer is the last result, and whether
// it is a number that counts something.
package cascade

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// Exam is the list of questions.
type Exam struct {
	Questions []Question `json:"questions"`
}

// Text is the answer of a model.
type Text struct {
	Text string `json:"text"`
}

// Choice is the final answer to a question.
type Choice struct {
	Question   string   `json:"question"` // its id
	Model      string   `json:"model"`    // that gave the answer
	AskedLarge bool     `json:"asked_large"`
	Refused    []string `json:"refused,omitempty"` // the checks that the small model's answer did not pass
	Unsure     bool     `json:"unsure"`            // the gate refused it, and no candidate is left
	CostUSD    float64  `json:"cost_usd"`
}

var (
	All      = dag.NewType[Exam]("exam")
	Asked    = dag.NewType[Question]("question")
	Solution = dag.NewType[Text]("solution")
	Chosen   = dag.NewType[Choice]("choice")
	Result   = dag.NewType[Report]("report")
)

// Pipeline is made from its arguments: --data FILE, --n COUNT and --out DIR.
func Pipeline(args []string) (stone.Ashlar, error) {
	flags := flag.NewFlagSet("cascade", flag.ContinueOnError)
	var usage strings.Builder
	flags.SetOutput(&usage)
	data := flags.String("data", "", "the recorded answers, in JSON Lines")
	n := flags.Int("n", 0, "ask only the first so many questions; 0 is all")
	out := flags.String("out", "cascade-out", "the directory for the table, the plot and the numbers")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || *n < 0 {
		flags.Usage()
		return stone.Ashlar{}, errors.New(strings.TrimSpace(usage.String()))
	}
	if *data == "" {
		return stone.Ashlar{}, errors.New("no questions: give --data FILE after --, as in stone run ./examples/cascade -- --data responses.jsonl")
	}
	e, err := readExam(*data)
	if err != nil {
		return stone.Ashlar{}, err
	}
	if *n > len(e.questions) {
		return stone.Ashlar{}, fmt.Errorf("--n %d: %s has %d questions", *n, *data, len(e.questions))
	}
	if *n > 0 {
		e.questions = e.questions[:*n]
	}
	return e.pipeline(*out), nil
}

// pipeline asks all questions and writes a report to a directory.
func (e *exam) pipeline(out string) stone.Ashlar {
	return stone.Seq("cascade",
		stone.Func0("read", All, func(context.Context) (Exam, error) { return Exam{e.questions}, nil }),
		stone.Map("each-question", dag.Derive(All, func(x Exam) []Question { return x.Questions }), Asked,
			stone.Seq("answer", e.solve(), choose()),
			stone.AllLanes()),
		stone.Reduce(stone.Func("score", dag.All(Chosen), Result, func(_ context.Context, choices []Choice) (Report, error) {
			r := e.score(choices)
			r.Text += "\nThe table, a plot and the numbers are in " + out + ".\n"
			return r, r.write(out)
		})),
	)
}
