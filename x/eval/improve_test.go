package eval_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/eval"
)

// A pupil answers "kind k, item i" with k if its prompt has the rule for the kind, and "?" otherwise. Its teacher
// knows the rules, and adds the rule for the first case it is shown.
type pupil struct {
	answers, lessons atomic.Int32
	tested           atomic.Int32 // answers to cases of test
	usd              float64      // of an answer and of a lesson
	lesson           func(seen string) (prompt string)
}

const kinds = 4

func rule(k string) string { return "\nrule of " + k }

// hears answers a text, given the prompt.
func (p *pupil) hears(system, text string) string {
	p.answers.Add(1)
	if strings.Contains(text, "test") {
		p.tested.Add(1)
	}
	k := strings.TrimSuffix(strings.Fields(text)[1], ",")
	if strings.Contains(system, rule(k)) {
		return k
	}
	return "?"
}

// app has the teacher and, as "pupil", the pupil with the prompt "Answer.".
func (p *pupil) app() *call.Applicator {
	teacher := call.Func(call.Metadata{ID: "teacher", Cost: call.Cost{USD: p.usd}}, func(_ context.Context, in struct{ Prompt string }) (any, error) {
		p.lessons.Add(1)
		return map[string]string{"why": "a rule is missing", "prompt": p.lesson(in.Prompt)}, nil
	})
	capable := model.New(call.Metadata{ID: "pupil", Intents: []string{"say"}, Cost: call.Cost{USD: p.usd}}, model.Config{
		Model: script.Func(func(_ int, req *llm.Request) script.Answer {
			return script.Text(p.hears(req.System, req.Messages[0].Text()))
		}),
		Prompt: "Answer.", Intents: map[string]string{"say": "Say the kind."},
	})
	return &call.Applicator{Registry: call.NewRegistry(teacher, capable)}
}

// teach adds the rule of the first case.
func teach(seen string) string {
	_, after, _ := strings.Cut(seen, "The prompt:\n")
	lines := strings.Split(after, "\n")
	prompt := strings.Join(lines[1:slices.Index(lines[1:], lines[0])+1], "\n")
	_, input, _ := strings.Cut(seen, `"kind `)
	k, _, _ := strings.Cut(input, ",")
	return prompt + rule(k)
}

// byAgent and byCall make the pupil a pipeline.
func (p *pupil) byAgent(*call.Applicator) stone.Ashlar {
	answer := dag.NewType[agent.Text]("answer")
	return agent.New("pupil", answer, script.Func(func(_ int, req *llm.Request) script.Answer {
		return script.Text(p.hears(req.System, req.Messages[0].Text()))
	}), agent.Config{System: agent.Adjustable("rules", "Answer."), User: agent.Prompt(asked, func(q question) string { return q.Text })})
}

func (p *pupil) byCall(app *call.Applicator) stone.Ashlar {
	return call.New("say", dag.NewType[agent.Text]("said"), call.Spec{Applicator: app, Intent: "say", Cap: "pupil", Input: call.From(asked)})
}

func lessons(n int) (d eval.Data) {
	for i := range n {
		split := []string{"dev", "test"}[i%2]
		k := fmt.Sprint((i / 2) % kinds)
		d.Rows = append(d.Rows, map[string]any{"text": fmt.Sprintf("kind %s, %s item %d", k, split, i), "expected": k, "split": split})
	}
	return d
}

func (p *pupil) improving(t *testing.T, as func(*call.Applicator) stone.Ashlar, n int) eval.Improving {
	app := p.app()
	return eval.Improving{Program: as(app), Data: lessons(n), Scorer: scorers(t, "exact")[0], Applicator: app, By: "teacher"}
}

// accepting answers the question with a choice.
func accepting(choice string) stone.Config {
	return stone.Config{Frontend: person(choice)}
}

type person string

func (p person) Ask(context.Context, ask.Question) (ask.Answer, error) {
	return ask.Answer{Response: string(p)}, nil
}

// A prompt gets better on dev, and the test, which is looked at once, shows it.
func TestImprove(t *testing.T) {
	for name, as := range map[string]func(*pupil) func(*call.Applicator) stone.Ashlar{
		"rules": func(p *pupil) func(*call.Applicator) stone.Ashlar { return p.byAgent },
		"pupil": func(p *pupil) func(*call.Applicator) stone.Ashlar { return p.byCall },
	} {
		t.Run(name, func(t *testing.T) {
			p := &pupil{lesson: teach}
			i := p.improving(t, as(p), 80)
			i.Prompts = []string{name}
			r, err := i.Run(t.Context(), accepting("accept"))
			if err != nil {
				t.Fatal(err)
			}
			if r.Before.Mean != 0 || r.After.Mean != 1 || !r.Better() || !r.Accepted || r.Test.After.Mean != 1 || len(r.Changes) != 1 || r.Changes[0].Prompt != name {
				t.Errorf("got %+v", r)
			}
			for k := range kinds {
				if !strings.Contains(r.Changes[0].After, rule(fmt.Sprint(k))) {
					t.Errorf("the prompt lacks the rule of %d: %q", k, r.Changes[0].After)
				}
			}
			if got := p.tested.Load(); got != 2*40 {
				t.Errorf("%d answers to cases of test, want each of 40 twice", got)
			}
			if text := r.Text(); !strings.Contains(text, "look 1 at it") || !strings.Contains(text, "+ rule of 3") || !strings.Contains(text, "  Answer.") {
				t.Errorf("printed:\n%s", text)
			}
		})
	}
}

// What is no better on dev is not tested, and nobody is asked about it.
func TestNoImprovement(t *testing.T) {
	for name, lesson := range map[string]func(string) string{
		"worse":     func(string) string { return "Be nice." },
		"empty":     func(string) string { return " " },
		"the same":  func(string) string { return "Answer." },
		"too large": func(string) string { return strings.Repeat("x", 1<<17) },
	} {
		p := &pupil{lesson: lesson}
		i := p.improving(t, p.byAgent, 40)
		i.Rounds = 3
		r, err := i.Run(t.Context(), stone.Config{})
		if err != nil || r.Test != nil || r.Changes != nil || len(r.Rounds) != 3 || p.tested.Load() != 0 {
			t.Errorf("%s: %+v, %v; %d answers to cases of test", name, r, err, p.tested.Load())
		}
		if name != "worse" && !strings.HasPrefix(r.Rounds[0].Why, "no proposal: ") {
			t.Errorf("%s: round %+v", name, r.Rounds[0])
		}
	}
}

// Without significance there is no change: the rule of a dev case that test hardly has.
func TestNotSignificant(t *testing.T) {
	p := &pupil{lesson: teach}
	i := p.improving(t, p.byAgent, 80)
	for n, row := range i.Data.Rows {
		if row := row.(map[string]any); row["split"] == "test" && n != 1 {
			row["text"], row["expected"] = fmt.Sprintf("kind 9, test item %d", n), "9"
		}
	}
	r, err := i.Run(t.Context(), stone.Config{}) // nobody answers
	if err != nil || r.Test == nil || r.Better() || r.Accepted || !strings.Contains(r.Text(), "no improvement is shown") {
		t.Errorf("%+v, %v", r, err)
	}
}

// Money for the test is kept back, and a run that has too little for it says so after dev, and can be resumed.
func TestImproveWithinBudget(t *testing.T) {
	p := &pupil{lesson: teach, usd: 1}
	i := p.improving(t, p.byCall, 80) // 40 for dev, 80 for the test, 41 for a round
	for _, c := range []struct {
		usd    float64
		rounds int
	}{{170, 1}, {230, 2}, {1000, 4}} {
		account := budget.New(budget.Limits{USD: new(c.usd)})
		r, err := i.Run(budget.With(t.Context(), account), accepting("refuse"))
		if err != nil || r.Test == nil || r.Accepted || len(r.Rounds) < c.rounds || r.USD > c.usd || r.USD != account.Used().USD {
			t.Errorf("with %v USD: %+v, %v; used %v", c.usd, r, err, account.Used().USD)
		}
	}
	j, run := memdb.New(t), stone.Config{RunID: "r"}
	run.Recorder = journal.Keep(j, journal.Options{})
	_, err := i.Run(budget.With(t.Context(), budget.New(budget.Limits{USD: new(100.0)})), run)
	if spent, ok := errors.AsType[*budget.ExhaustedError](err); !ok || spent.Enough != 160 {
		t.Fatalf("with too little: %v", err)
	}
	before := p.answers.Load()
	r, err := i.Run(budget.With(t.Context(), budget.New(budget.Limits{USD: new(170.0)})), run)
	if !errors.Is(err, kind.Waiting) || p.answers.Load() > before+130 {
		t.Errorf("with more: %+v, %v; %d more answers", r, err, p.answers.Load()-before)
	}
	if asked, err := j.Questions(t.Context(), "r"); err != nil || len(asked) != 1 || !strings.Contains(asked[0].Text, "Accept these prompts?") {
		t.Errorf("asked %v, %v", asked, err)
	}
}

// What an improvement cannot work with is an error before anything is asked.
func TestImproveMistakes(t *testing.T) {
	p := &pupil{lesson: teach}
	for want, change := range map[string]func(*eval.Improving){
		"no prompt of the pipeline may be revised": func(i *eval.Improving) {
			i.Program = stone.Func("reply", asked, reply, func(context.Context, question) (string, error) { return "", nil })
		},
		`no prompt "rule" to revise; it has`:        func(i *eval.Improving) { i.Prompts = []string{"rule"} },
		"did you mean":                              func(i *eval.Improving) { i.Prompts = []string{"rule"} },
		"teacher2, which should revise the prompts": func(i *eval.Improving) { i.By = "teacher2" },
		"no capability is set to revise":            func(i *eval.Improving) { i.By = "" },
		"want 1 to 200":                             func(i *eval.Improving) { i.Rounds = 1000 },
		`no rows of the split "test"`:               func(i *eval.Improving) { i.Data.Rows = i.Data.Rows[:1] },
		"two prompts of the pipeline are named":     func(i *eval.Improving) { i.Program = stone.Seq("both", i.Program, other()) },
	} {
		i := p.improving(t, p.byAgent, 8)
		change(&i)
		if _, err := i.Run(t.Context(), stone.Config{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if n := p.answers.Load(); n > 0 {
		t.Errorf("%d answers", n)
	}
}

func other() stone.Ashlar {
	return agent.New("other", dag.NewType[agent.Text]("other"), script.New(), agent.Config{User: agent.Adjustable("rules", "Something else.")})
}
