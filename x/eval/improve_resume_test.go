package eval_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/batchtest"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/batch"
	"github.com/stonelayer/stone/x/eval"
)

// A run that is stopped and resumed with the same budget keeps the rounds that it has paid for.
func TestImproveResumedWithinBudget(t *testing.T) {
	const usd = 290 // 40 for dev, 41 for each of four rounds, 80 for the test: 284
	start := func(p *pupil, stop int32, cancel func()) eval.Improving {
		teacher := call.Func(call.Metadata{ID: "teacher", Cost: call.Cost{USD: 1}}, func(_ context.Context, in struct{ Prompt string }) (any, error) {
			p.lessons.Add(1)
			return map[string]string{"why": "a rule is missing", "prompt": teach(in.Prompt)}, nil
		})
		capable := model.New(call.Metadata{ID: "pupil", Intents: []string{"say"}, Cost: call.Cost{USD: 1}}, model.Config{
			Model: script.Func(func(_ int, req *llm.Request) script.Answer {
				if n := p.answers.Load(); stop > 0 && n >= stop {
					cancel()
				}
				return script.Text(p.hears(req.System, req.Messages[0].Text()))
			}),
			Prompt: "Answer.", Intents: map[string]string{"say": "Say the kind."},
		})
		app := &call.Applicator{Registry: call.NewRegistry(teacher, capable)}
		i := p.improving(t, p.byCall, 80)
		i.Program, i.Applicator, i.Lanes = p.byCall(app), app, 2
		return i
	}
	for name, stop := range map[string]int32{"not stopped": 0, "stopped in round 4": 185, "stopped in the test": 230} {
		t.Run(name, func(t *testing.T) {
			p, j := &pupil{usd: 1}, memdb.New(t)
			cfg := accepting("accept")
			cfg.RunID, cfg.Recorder = "r", journal.Keep(j, journal.Options{})
			if stop > 0 {
				ctx, cancel := context.WithCancel(t.Context())
				if _, err := start(p, stop, cancel).Run(budget.With(ctx, budget.New(budget.Limits{USD: new(float64(usd))})), cfg); err == nil {
					t.Fatal("it was not stopped")
				}
				cancel()
			}
			r, err := start(p, 0, func() {}).Run(budget.With(t.Context(), budget.New(budget.Limits{USD: new(float64(usd))})), cfg)
			if err != nil {
				t.Fatalf("%d answers, %d lessons: %v", p.answers.Load(), p.lessons.Load(), err)
			}
			if r.Test == nil || len(r.Rounds) != 4 || r.After.Mean != 1 {
				t.Errorf("%d rounds, stopped because %q, test %v; %d answers were paid\n%s", len(r.Rounds), r.Stopped, r.Test != nil, p.answers.Load(), strings.TrimSpace(r.Text()))
			}
		})
	}
}

// What a refused proposal has cost is in the cost of the revision.
func TestImproveCountsFailedProposals(t *testing.T) {
	p := &pupil{usd: 1}
	teacher := call.Func(call.Metadata{ID: "teacher", Cost: call.Cost{USD: 10}}, func(context.Context, struct{ Prompt string }) (any, error) {
		return "no object at all", nil // does not fit the schema of a proposal
	})
	capable := model.New(call.Metadata{ID: "pupil", Intents: []string{"say"}, Cost: call.Cost{USD: 1}}, model.Config{
		Model: script.Func(func(_ int, req *llm.Request) script.Answer {
			return script.Text(p.hears(req.System, req.Messages[0].Text()))
		}),
		Prompt: "Answer.", Intents: map[string]string{"say": "Say the kind."},
	})
	app := &call.Applicator{Registry: call.NewRegistry(teacher, capable)}
	i := p.improving(t, p.byCall, 40)
	i.Program, i.Applicator, i.Rounds = p.byCall(app), app, 3
	account := budget.New(budget.Limits{})
	r, err := i.Run(budget.With(t.Context(), account), accepting("accept"))
	if err != nil {
		t.Fatal(err)
	}
	if used := account.Used().USD; r.USD != used {
		t.Errorf("the revision says that it cost %v USD, the account paid %v; rounds %+v", r.USD, used, r.Rounds)
	}
}

// Nothing is stopped here: the pupil is asked in batches.
func TestImproveInBatches(t *testing.T) {
	b, j, p := batchtest.New(t, 0), memdb.New(t), &pupil{lesson: teach}
	text := regexp.MustCompile(`kind [0-9], \w+ item \d+`)
	b.Answer = func(protocol, body string) string {
		var asked struct{ System json.RawMessage }
		_ = json.Unmarshal([]byte(body), &asked)
		return batchtest.Said(protocol, p.hears(strings.ReplaceAll(string(asked.System), `\n`, "\n"), text.FindString(body)))
	}
	answer := dag.NewType[agent.Text]("answer")
	program := agent.New("pupil", answer, anthropic.New(anthropic.Config{URL: b.URL, Key: "key", Model: "m", MaxTokens: 100}),
		agent.Config{System: agent.Adjustable("rules", "Answer."), User: agent.Prompt(asked, func(q question) string { return q.Text }), MaxTokens: 100})
	i := p.improving(t, func(*call.Applicator) stone.Ashlar { return program }, 80)
	i.Prompts = []string{"rules"}
	ctx := llm.WithTable(t.Context(), func(llm.Info) llm.Spec { return llm.Spec{Price: &budget.Price{In: 1, Out: 10}} })
	const usd = 0.30 // 0.04 for dev, 0.04 for each of four rounds, 0.08 for the test: 0.28
	ctx = budget.With(ctx, budget.New(budget.Limits{USD: new(float64(usd))}))
	cfg := accepting("accept")
	cfg.RunID, cfg.Recorder = "r", journal.Keep(j, journal.Options{})
	q, err := i.Pipeline(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	result, err := batch.Run(ctx, q, cfg, batch.Config{Journal: j, Every: time.Millisecond})
	if err != nil {
		t.Fatalf("%d answers, %d lessons: %v", p.answers.Load(), p.lessons.Load(), err)
	}
	r, err := eval.Improved.Of(result.Node)
	if err != nil {
		t.Fatal(err)
	}
	if r.Test == nil || len(r.Rounds) != 4 || r.After.Mean != 1 {
		t.Errorf("%d rounds, %d lessons, stopped because %q, test %v, spent %v\n%s", len(r.Rounds), p.lessons.Load(), r.Stopped, r.Test != nil, budget.From(ctx).Spent().USD, strings.TrimSpace(r.Text()))
	}
}

// A provider that is down from some answer on makes no version the best one, and is no success.
func TestImproveOutage(t *testing.T) {
	for name, from := range map[string]int32{"from the beginning": 0, "in a round": 45} {
		t.Run(name, func(t *testing.T) {
			p := &pupil{usd: 1}
			teacher := call.Func(call.Metadata{ID: "teacher"}, func(_ context.Context, in struct{ Prompt string }) (any, error) {
				return map[string]string{"why": "a rule is missing", "prompt": teach(in.Prompt)}, nil
			})
			capable := model.New(call.Metadata{ID: "pupil", Intents: []string{"say"}}, model.Config{
				Model: script.Func(func(_ int, req *llm.Request) script.Answer {
					if p.answers.Load() >= from {
						return script.Fail(errors.New("the account has a problem"))
					}
					return script.Text(p.hears(req.System, req.Messages[0].Text()))
				}),
				Prompt: "Answer.", Intents: map[string]string{"say": "Say the kind."},
			})
			i := p.improving(t, p.byCall, 80)
			app := &call.Applicator{Registry: call.NewRegistry(teacher, capable)}
			i.Program, i.Applicator, i.Lanes = p.byCall(app), app, 2
			r, err := i.Run(t.Context(), accepting("accept"))
			if err == nil && (from == 0 || r.Test != nil || r.Accepted) {
				t.Errorf("stopped because %q, test %v\n%s", r.Stopped, r.Test != nil, strings.TrimSpace(r.Text()))
			}
			if err != nil {
				t.Log(err)
			}
		})
	}
}
