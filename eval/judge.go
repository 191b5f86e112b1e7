package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
)

// grade is the answer of a judge.
type grade struct {
	Score   float64  `json:"score"`
	Reasons []string `json:"reasons,omitempty"`
}

// judge makes a scorer of calls with the intent eval/grade. Their candidates, retries,
// budget are those of every call, and grades of earlier runs are taken. A judge that cannot be asked, or gives no
// score, is an error. A pairwise judge is asked twice, with the answer and the expectation
// in either order, and grades the second: an answer that wins only in one order is a tie.
func (s scorerSpec) judge(app *call.Applicator) (Scorer, error) {
	rubric := s.argument
	if file, ok := strings.CutPrefix(rubric, "@"); ok {
		data, err := os.ReadFile(file)
		if err != nil {
			return Scorer{}, err
		}
		rubric = string(data)
	}
	switch {
	case strings.TrimSpace(rubric) == "":
		return Scorer{}, errors.New("the judge has no rubric: give it as judge:TEXT or judge:@FILE")
	case app == nil:
		return Scorer{}, errors.New("a judge is a capability with the intent eval/grade: configure one in .stone/stone.edn")
	}
	first, second := dag.NewType[grade]("eval/grade"), dag.NewType[grade]("eval/grade-turned")
	calls := []dag.Querier{dag.All(first), dag.All(call.Failed(first))}
	if s.kind == "judge" {
		return Scorer{s.name, func(set *dataset) stone.Ashlar {
			return s.judged(set, func(gs []grade) Score {
				return Score{Value: gs[0].Score, Reason: strings.Join(gs[0].Reasons, "; ")}
			}, s.ask(set, app, "judge", first, rubric, false))
		}, calls}, nil
	}
	rubric += "\n\nGrade 1 if the second of the two answers in \"out\" is better, 0 if the first is better, 0.5 if they are equally good."
	return Scorer{s.name, func(set *dataset) stone.Ashlar {
		return s.judged(set, func(gs []grade) Score {
			turned := 1 - gs[1].Score
			return Score{Value: (gs[0].Score + turned) / 2, Reason: fmt.Sprintf("as the second: %.2g, as the first: %.2g", gs[0].Score, turned)}
		}, s.ask(set, app, "forth", first, rubric, false), s.ask(set, app, "back", second, rubric, true))
	}, append(calls, dag.All(second), dag.All(call.Failed(second)))}, nil
}

// asking is a call of a judge and the type of its grade.
type asking struct {
	ashlar stone.Ashlar
	grade  dag.Type[grade]
}

// remembered is how old a grade may be that is taken in place of asking: a judge is not paid
// twice for the same answer to the same trial of a case.
const remembered = 365 * 24 * time.Hour

// ask is the call of a judge.
func (s scorerSpec) ask(set *dataset, app *call.Applicator, name string, g dag.Type[grade], rubric string, turned bool) asking {
	spec := call.Spec{
		Applicator: app, Intent: call.EvalGrade,
		Dispatch: call.Dispatch{AllowFailure: true}, Cache: call.Cache{MaxAge: remembered},
		Requires: call.Requires{OutSchema: call.EvalAnswer},
		Input: dag.ReaderFunc(func(d dag.DAG) (any, error) {
			c, _, err := set.caseOf(d)
			if err != nil {
				return nil, err
			}
			got, err := s.got(c)
			if err != nil {
				got = json.RawMessage("null")
			}
			out := any(got)
			if s.kind == "pairwise" {
				pair := []json.RawMessage{c.Expected, got}
				if turned {
					pair = []json.RawMessage{got, c.Expected}
				}
				out = pair
			}
			input := map[string]any{"rubric": rubric, "intent": "eval/answer", "input": c.Input, "out": out}
			if c.Expected != nil && s.kind == "judge" {
				input["expected"] = c.Expected
			}
			return input, nil
		}, answered),
	}
	return asking{call.New(name, g, spec), g}
}

// judged makes the score of the grades, if the case has an answer.
func (s scorerSpec) judged(set *dataset, score func([]grade) Score, asked ...asking) stone.Ashlar {
	steps, reads := []stone.Ashlar{}, []dag.Querier{answered}
	for _, a := range asked {
		steps = append(steps, a.ashlar)
		reads = append(reads, dag.Maybe(a.grade), dag.Maybe(call.Failed(a.grade)))
	}
	steps = append(steps, stone.New("score", scored, func(_ context.Context, d dag.DAG) (Score, error) {
		var grades []grade
		for _, a := range asked {
			g, err := dag.Maybe(a.grade).From(d)
			if err != nil {
				return Score{}, err
			}
			if g == nil {
				failed, err := dag.Maybe(call.Failed(a.grade)).From(d)
				if err != nil || failed == nil {
					return Score{}, errors.Join(err, errors.New("the judge left no grade"))
				}
				return Score{Verdict: Error, Reason: "the judge failed: " + failed.Failure + ": " + failed.Error}, nil
			}
			grades = append(grades, *g)
		}
		return score(grades).judged(), nil
	}, stone.Queries(reads...)))
	unanswered := stone.New("unanswered", scored, func(_ context.Context, d dag.DAG) (Score, error) {
		_, settled, err := set.caseOf(d)
		if err == nil && settled == nil {
			err = errors.New("the case has an answer")
		}
		if err != nil {
			return Score{}, err
		}
		return *settled, nil
	}, stone.Queries(answered))
	return stone.Match(s.name, stone.On(answered, func(a answer) bool { return a.Failure == nil }),
		stone.Case(true, stone.Seq("judge", steps...)), stone.Case(false, unanswered))
}
