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
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
)

// A grade is the answer of a judge.
type grade struct {
	Score   float64  `json:"score"`
	Reasons []string `json:"reasons,omitempty"`
}

// graded is a grade, or the reason why there is none.
type graded struct {
	Grade   grade  `json:"grade,omitzero"`
	Failure string `json:"failure,omitempty"`
}

// judge returns a scorer that makes calls with the intent eval/grade. Like all calls, they have candidates, retries and a budget,
// and reuse the grades of earlier runs. If a judge is unavailable or returns no score, the verdict is an error. A pairwise judge
// grades the second of two texts. It is called twice, with the answer and the expected output in both orders; if the answer wins
// in only one order, the result is a tie.
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
		return Scorer{}, errors.New("the judge has no rubric: set it with judge:TEXT or judge:@FILE")
	case app == nil:
		return Scorer{}, errors.New("no capability with the intent eval/grade is configured, which a judge needs: add one to .stone/stone.edn")
	}
	first, second := dag.NewType[graded]("eval/graded"), dag.NewType[graded]("eval/graded-turned")
	if s.kind == "judge" {
		return Scorer{name: s.name, leaf: func(set *dataset) stone.Ashlar {
			return s.judged(set, func(gs []grade) Score {
				return Score{Value: gs[0].Score, Reason: strings.Join(gs[0].Reasons, "; ")}
			}, s.ask(set, app, "judge", first, rubric, false))
		}, calls: []dag.Querier{dag.History(first)}}, nil
	}
	rubric += "\n\nGrade 1 if the second of the two answers in \"out\" is better, 0 if the first is better, 0.5 if they are equally good."
	return Scorer{name: s.name, leaf: func(set *dataset) stone.Ashlar {
		return s.judged(set, func(gs []grade) Score {
			turned := 1 - gs[1].Score
			return Score{Value: (gs[0].Score + turned) / 2, Reason: fmt.Sprintf("as the second: %.2g, as the first: %.2g", gs[0].Score, turned)}
		}, s.ask(set, app, "forth", first, rubric, false), s.ask(set, app, "back", second, rubric, true))
	}, calls: []dag.Querier{dag.History(first), dag.History(second)}}, nil
}

// An asking is a step that calls a judge, with the type of the step's node.
type asking struct {
	ashlar stone.Ashlar
	graded dag.Type[graded]
}

// remembered is the maximum age of a grade that is reused, so that no judge is paid twice for the same answer in the same trial
// of a case.
const remembered = 365 * 24 * time.Hour

// ask returns the step that calls a judge. If the call fails, the failure becomes the step's result, unless it must end the run.
// Dispatch.AllowFailure is not used, because it would turn even an exhausted budget into a result.
func (s scorerSpec) ask(set *dataset, app *call.Applicator, name string, out dag.Type[graded], rubric string, turned bool) asking {
	grades := dag.NewType[grade]("eval/grade")
	c := call.New("ask", grades, call.Spec{
		Applicator: app, Intent: terms.Grade, Cache: call.Cache{MaxAge: new(remembered)},
		Requires: call.Requires{OutSchema: terms.EvalAnswer},
		Input:    dag.ReaderFunc(func(d dag.DAG) (any, error) { return s.question(set, d, rubric, turned) }, answered),
	})
	return asking{stone.Leaf(name, out, func(ctx context.Context, d dag.DAG) (*dag.Node, error) {
		account := budget.From(ctx).Under(stone.In(ctx).Path())
		end := stone.In(budget.With(ctx, account)).RunChild(c, d)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case end.InFlight() && ends(end.Cause()):
			return nil, ending(end.Cause())
		}
		var got graded
		var err error
		if end.InFlight() {
			got.Failure = end.Cause().Error()
		} else {
			got.Grade, err = grades.From(end.Within(nil))
		}
		if err != nil {
			return nil, err
		}
		cost, err := json.Marshal(paid{Usage: account.Used()})
		if err != nil {
			return nil, err
		}
		return dag.NewNode(dag.Spec{Type: out.Name(), Content: got, Parents: d.Next(), Meta: map[string]string{metaKey: string(cost)}})
	}, stone.Queries(answered), stone.Children(stone.Walk{}.Reads().InOrder(c))), out}
}

// question returns the input of a judge.
func (s scorerSpec) question(set *dataset, d dag.DAG, rubric string, turned bool) (any, error) {
	c, _, err := set.caseOf(d, "")
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
}

// judged returns the step that computes the score of a case from the grades. If the case has no answer, the score is already
// settled.
func (s scorerSpec) judged(set *dataset, score func([]grade) Score, asked ...asking) stone.Ashlar {
	steps, reads := []stone.Ashlar{}, []dag.Querier{answered}
	for _, a := range asked {
		steps, reads = append(steps, a.ashlar), append(reads, a.graded)
	}
	steps = append(steps, stone.New("score", scored, func(_ context.Context, d dag.DAG) (Score, error) {
		var grades []grade
		for _, a := range asked {
			g, err := a.graded.From(d)
			if err != nil {
				return Score{}, err
			}
			if g.Failure != "" {
				return Score{Verdict: errored, Reason: "the judge failed: " + g.Failure}, nil
			}
			grades = append(grades, g.Grade)
		}
		return score(grades).judged(), nil
	}, stone.Queries(reads...)))
	unanswered := stone.New("unanswered", scored, func(_ context.Context, d dag.DAG) (Score, error) {
		_, settled, err := set.caseOf(d, "")
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
