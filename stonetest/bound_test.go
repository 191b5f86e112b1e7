package stonetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/plan"
)

var pipelines = flag.Int("pipelines", 300, "how many random pipelines TestBound runs")

// TestBound runs random pipelines over scripted models, which answer badly, repeat themselves, call tools and report
// what they like within their windows. No run costs more than its bound. With scripts that use every token, a run costs at
// least nine tenths of it.
func TestBound(t *testing.T) {
	n := *pipelines
	for _, test := range []struct {
		name   string
		greedy bool
		n      int
	}{{"any script", false, n * 4 / 5}, {"every token", true, n / 5}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sum, most, ended := 0.0, 0.0, 0
				for seed := range uint64(test.n) {
					w := &priced{Rand: rand.New(rand.NewPCG(seed, 1)), greedy: test.greedy, width: int(seed % 4), specs: map[string]llm.Spec{}}
					p := w.pipeline(3)
					input := dag.Of(boundList.With(make([]string, w.width)))
					ctx := llm.WithTable(t.Context(), w.table)
					bound := p.Bound(ctx, stone.Config{Input: input}.Given())
					usd, known := bound.USD()
					if !known {
						t.Fatalf("seed %d: %s, open %q", seed, bound, bound.Open())
					}
					account := budget.New(budget.Limits{})
					_, err := stone.Run(budget.With(ctx, account), p, stone.Config{Input: input})
					if err == nil {
						ended++
					} else if test.greedy {
						t.Fatalf("seed %d: %v", seed, err)
					}
					spent := account.Spent().USD
					if spent > usd*(1+1e-9) || test.greedy && spent < 0.9*usd {
						t.Errorf("seed %d: %v spent, the bound is %v: %v (%v)", seed, spent, usd, bound.Parts(), err)
					}
					// The bound that does not know the input is the same once the width is known.
					items, err := boundList.From(input)
					if err != nil {
						t.Fatal(err)
					}
					blind := p.Bound(ctx, stone.Given{Input: []dag.AnyType{boundList}}).At(map[string]int{"each": len(items)})
					if again, _ := blind.USD(); again < usd*(1-1e-9) || again > usd*(1+1e-9) {
						t.Errorf("seed %d: %v with the list, %v with its length", seed, usd, again)
					}
					sum, most = sum+spent, most+usd
				}
				t.Logf("%d runs, %d without a failure: %.3g of %.3g USD", test.n, ended, sum, most)
				if !test.greedy && ended < test.n/10 {
					t.Errorf("only %d of %d runs ended well", ended, test.n)
				}
			})
		})
	}
}

type said struct {
	Answer int `json:"answer"`
}

var (
	boundList = dag.NewType[[]string]("list")
	boundItem = dag.NewType[string]("item")
	boundSaid = dag.NewType[said]("said")
	boundVote = dag.NewType[said]("vote")
	boundDone = dag.NewType[int]("done")
)

// priced makes random pipelines and the models that they ask.
type priced struct {
	*rand.Rand
	greedy bool // every request uses all tokens, and nothing ends early
	width  int  // of the list
	names  int
	specs  map[string]llm.Spec
}

func (w *priced) table(i llm.Info) llm.Spec { return w.specs[i.Model] }

func (w *priced) name(form string) string {
	w.names++
	return fmt.Sprint(form, w.names)
}

func (w *priced) oneIn(n int) bool { return w.IntN(n) == 0 }

// coin returns a function that is true once in n times, for the bodies of a run.
func (w *priced) coin(n int) func() bool {
	var mu sync.Mutex
	own := rand.New(rand.NewPCG(w.Uint64(), 2))
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		return own.IntN(n) == 0
	}
}

func done(name string) stone.Ashlar {
	return stone.Func0(name, boundDone, func(context.Context) (int, error) { return 1, nil })
}

// joined closes a fan-out.
func (w *priced) joined(a stone.Ashlar) stone.Ashlar {
	return stone.Seq(w.name("fan"), a, stone.Reduce(stone.Func(w.name("join"), dag.Maybe(dag.History(boundDone)), boundDone, func(context.Context, *[]int) (int, error) { return 1, nil })))
}

// pipeline makes one of at most a depth.
func (w *priced) pipeline(depth int) stone.Ashlar {
	if depth == 0 {
		return w.leaf(boundSaid)
	}
	some := func() (all []stone.Ashlar) {
		for range 1 + w.IntN(3) {
			all = append(all, w.pipeline(depth-1))
		}
		return all
	}
	switch w.IntN(8) {
	case 0, 1:
		return stone.Seq(w.name("seq"), some()...)
	case 2:
		return stone.Flow(w.name("flow"), some()...)
	case 3:
		enough := w.coin(3)
		last := stone.Until(dag.Nothing, func(struct{}) bool { return !w.greedy && enough() })
		loop := stone.Loop(w.name("loop"), w.pipeline(depth-1), last, 1+w.IntN(3))
		return stone.Rescue(w.name("rescue"), loop, w.pipeline(depth-1))
	case 4:
		a, b := w.pipeline(depth-1), w.pipeline(depth-1)
		usd := func(p stone.Ashlar) float64 {
			most, _ := p.Bound(llm.WithTable(context.Background(), w.table), stone.Given{}).At(map[string]int{"each": w.width}).USD()
			return most
		}
		dearer := usd(a) >= usd(b)
		return stone.Match(w.name("match"), stone.On(dag.Nothing, func(struct{}) bool { return dearer }), stone.Case(true, a), stone.Case(false, b))
	case 5:
		lanes := []stone.FanPart{stone.Quorum(1)}
		for _, a := range some() {
			lanes = append(lanes, stone.Seq(w.name("lane"), a, done(w.name("done"))))
		}
		return w.joined(stone.Parallel(w.name("parallel"), lanes...))
	case 6:
		return w.joined(stone.Map("each", boundList, boundItem, stone.Seq(w.name("lane"), w.leaf(boundSaid), done(w.name("done"))), stone.AllowEmpty(), stone.Quorum(1)))
	}
	return w.leaf(boundSaid)
}

func (w *priced) leaf(out dag.Type[said]) stone.Ashlar {
	switch {
	case w.oneIn(8):
		return done(w.name("go"))
	case w.oneIn(2):
		return w.call(out, 1)
	}
	return w.agent(out)
}

// agent makes an agent that is asked as often as it can be, or until the dice end it.
func (w *priced) agent(out dag.Type[said]) stone.Ashlar {
	turns, healing := 1+w.IntN(4), 0
	cfg := agent.Config{User: agent.Say("hello"), MaxTurns: turns, MaxTokens: 100 * w.IntN(3), NoCache: w.oneIn(2)}
	if w.greedy || w.oneIn(2) {
		cfg.Repetition = func() *llm.Watcher { return &llm.Watcher{} }
	}
	if out == boundSaid && w.oneIn(3) {
		healing, cfg.MaxTurns = w.IntN(3), turns+3
		cfg.MaxHealing, cfg.Adversary = &healing, w.adversary(healing)
		if w.oneIn(2) && healing > 0 {
			cfg.Healer = w.leaf(boundVote)
		}
	}
	if !w.greedy {
		w.equip(&cfg)
	}
	if !w.greedy && w.oneIn(4) {
		cfg.Options = append(cfg.Options, stone.Retry{Attempts: 1 + w.IntN(3)})
	}
	m := w.model(w.turns(cfg.MaxTurns, healing))
	if w.oneIn(4) {
		app := &call.Applicator{Registry: call.NewRegistry(model.New(call.Metadata{ID: "turn/a"}, model.Config{Model: m}))}
		m = call.Model(app, call.Spec{Cap: "turn/a"})
	} else if !w.greedy && w.oneIn(4) {
		m = llm.Fallback(m, w.model(nil))
	}
	return agent.New(w.name("agent"), out, m, cfg)
}

// equip gives an agent tools, one of them a pipeline, and shortens its conversation.
func (w *priced) equip(cfg *agent.Config) {
	if w.oneIn(2) {
		cfg.MaxCalls = 2
		cfg.Use = append(cfg.Use, agent.AsTool("look", "looks", w.call(boundVote, 0), dag.NewType[struct{}]("looking"), boundVote))
	}
	if w.oneIn(4) {
		compact := agent.CompactConfig{MaxTokens: 10, Keep: 1}
		if w.oneIn(2) {
			compact.Model = w.model(nil)
		}
		cfg.Use = append(cfg.Use, agent.Compact(compact))
	}
}

// adversary rejects some drafts, or all but the last, after it has spent what it can.
func (w *priced) adversary(healing int) stone.Ashlar {
	harsh := w.coin(2)
	verdict := stone.Func(w.name("verdict"), boundSaid, boundDone, func(_ context.Context, s said) (int, error) {
		if w.greedy && s.Answer < healing || !w.greedy && harsh() {
			return 0, stone.Fail("bad-draft", "no")
		}
		return 1, nil
	})
	return stone.Seq(w.name("adversary"), w.leaf(boundVote), verdict)
}

// call makes a call whose candidates are all asked as often as they can be, or until the dice end it.
func (w *priced) call(out dag.Type[said], depth int) stone.Ashlar {
	var ids []string
	var caps []call.Capability
	add := func(m call.Metadata) string {
		m.ID = w.name("cap")
		if m.CanProduce = nil; w.oneIn(4) {
			m.Cost.USD = 0.001
		}
		switch {
		case m.Intents == nil && depth > 0 && w.oneIn(6):
			caps = append(caps, call.Pipeline(m, w.agent(boundVote), dag.NewType[struct{}]("in"), boundVote))
		case m.Intents == nil && w.oneIn(6):
			m.Cost.USD = 0.01
			caps = append(caps, call.Func(m, func(context.Context, struct{}) (said, error) { return said{}, nil }))
		default:
			if m.Cost.USD = 0; m.Cost != (call.Cost{}) {
				panic("a cost by tokens")
			}
			caps = append(caps, model.New(m, model.Config{Model: w.model(w.twice), MaxTokens: 50 * w.IntN(3)}))
		}
		return m.ID
	}
	for range 1 + w.IntN(3) {
		ids = append(ids, add(call.Metadata{}))
	}
	strategies := []string{call.Cascade, call.Tournament, call.Race}
	if len(ids) > 1 {
		strategies = append(strategies, call.Agreement)
	}
	harsh, score := w.coin(2), 1.0
	app := &call.Applicator{Checks: map[string]call.Check{"harsh": func(context.Context, call.Subject) error {
		if w.greedy || harsh() {
			return errors.New("no")
		}
		return nil
	}}, CheckFacts: map[string]call.CheckFacts{}}
	spec := call.Spec{Applicator: app, Intent: "say", Requires: call.Requires{Reply: call.Value}, Done: call.Done{Should: []string{"harsh"}, ScoreMin: &score},
		Dispatch: call.Dispatch{Candidates: ids, Strategy: strategies[w.IntN(len(strategies))], AllowFailure: w.greedy || w.oneIn(2), Retry: call.Retry{SameCapMax: new(w.IntN(2))}}}
	if !w.greedy && w.oneIn(3) {
		spec.Dispatch.Retry.FallbackMax = new(w.IntN(2))
	}
	if w.oneIn(3) {
		spec.Dispatch.Repair = &call.Repair{Max: w.IntN(3)}
		if w.oneIn(2) {
			spec.Dispatch.Repair.Cap = add(call.Metadata{})
		}
	}
	if w.oneIn(3) {
		on := true
		app.Policy.Default.Judge = call.Judge{On: &on, OnError: "open", MaxAttempts: new(1 + w.IntN(2)), Cap: add(call.Metadata{Intents: []string{terms.Grade}})}
	}
	var asks string
	if w.oneIn(3) {
		asks = add(call.Metadata{Intents: []string{terms.Check}})
		app.CheckFacts["asks"] = call.CheckFacts{Costly: true, Asks: asks}
		spec.Done.Should = append(spec.Done.Should, "asks")
		if w.oneIn(2) && !w.greedy {
			spec.Admit.Must = []string{"asks"}
		}
	}
	app.Registry = call.NewRegistry(caps...)
	app.Checks["asks"] = call.CheckBy("asks", app.Registry, asks)
	return call.New(w.name("call"), out, spec)
}

// A play is what a greedy model answers.
type play func(req *llm.Request) llm.Reply

// turns uses all turns of an agent and both answers of each repair, and gives as many drafts as there are votes.
func (w *priced) turns(turns, healing int) play {
	return func(req *llm.Request) llm.Reply {
		k, pauses := answered(req), turns-healing-1
		switch {
		case k < pauses:
			return llm.Reply{Text: "wait", StopReason: "pause_turn"}
		case (k-pauses)%2 == 0:
			return llm.Reply{Text: "no answer"}
		}
		return llm.Reply{Text: fmt.Sprintf(`{"answer": %d}`, (k-pauses)/2)}
	}
}

// twice gives the second answer only.
func (w *priced) twice(req *llm.Request) llm.Reply {
	if answered(req) == 0 || strings.Contains(string(deref(req.ResponseFormat).Schema), "score") || strings.Contains(string(deref(req.ResponseFormat).Schema), "pass") {
		return llm.Reply{Text: "no answer"}
	}
	return llm.Reply{Text: `{"answer": 1}`}
}

func deref(f *llm.Format) llm.Format {
	if f == nil {
		return llm.Format{}
	}
	return *f
}

// answered counts the turns of the model.
func answered(req *llm.Request) (n int) {
	for _, m := range req.Messages {
		if m.Role == llm.RoleAssistant {
			n++
		}
	}
	return n
}

// model makes a model with a price, which plays in greedy pipelines and otherwise throws dice.
func (w *priced) model(greedy play) llm.Model {
	spec := llm.Spec{Window: 200 + w.IntN(2000), Output: 20 + w.IntN(200),
		Price: &budget.Price{In: float64(w.IntN(20)), Out: float64(w.IntN(80)), CacheRead: float64(w.IntN(3)), CacheWrite: float64(w.IntN(30))}}
	dice := rand.New(rand.NewPCG(w.Uint64(), 3))
	name := w.name("model")
	w.specs[name] = spec
	return named{name, script.Func(func(_ int, req *llm.Request) script.Answer {
		out := min(spec.Output, spec.Window)
		if req.MaxTokens > 0 {
			out = min(out, req.MaxTokens)
		}
		if !w.greedy {
			return thrown(dice, spec.Window, out)
		}
		reply := greedy(req)
		in := spec.Window
		reply.Usage = llm.Usage{InputTokens: &in, OutputTokens: &out}
		if spec.Price.CacheWrite > spec.Price.In {
			reply.Usage.CacheWriteTokens = in
		} else if spec.Price.CacheRead > spec.Price.In {
			reply.Usage.CachedInputTokens = in
		}
		return script.Answer{Reply: reply}
	})}
}

// named is a model that the table knows.
type named struct {
	name string
	llm.Model
}

func (m named) Info() llm.Info { return llm.Info{Provider: "script", Model: m.name, Mode: llm.Mock} }

// thrown is a random answer of at most so many tokens, which the model reports or not.
func thrown(dice *rand.Rand, in, out int) script.Answer {
	text := func(s string) llm.Reply { return llm.Reply{Text: s} }
	answers := []script.Answer{
		{Reply: text("no answer")}, {Reply: text("")}, {Reply: text(strings.Repeat("again and ", 300))},
		{Reply: text(`{"answer": 1}`)}, {Reply: text(`{"answer": 1}`)}, {Reply: text(`{"score": 0.4}`)}, {Reply: text(`{"pass": true}`)},
		{Reply: text(`<tool_call>{"name": "look", "arguments": {}}</tool_call>`)}, {Reply: text(`<tool_call>{"name": "look", "arguments": {}}</tool_call>`)},
		script.Calls(llm.ToolCall{Name: "look", Input: []byte("{}")}, llm.ToolCall{Name: "look", Input: []byte("{}")}, llm.ToolCall{Name: "look", Input: []byte("{}")}),
		{Reply: llm.Reply{Text: "wait", StopReason: "pause_turn"}}, {Reply: llm.Reply{Text: "{\"ans", StopReason: "length"}}, {Reply: llm.Reply{Refusal: "no"}},
		{Reply: text("half"), Err: errors.New("the stream broke")}, {Reply: text("half"), Err: &llm.ProviderError{Message: "maximum context length exceeded"}},
		script.Status(500, "broken"), script.Status(400, "maximum context length exceeded"), {Reply: text(`{"answer": 2}`), Wait: time.Second},
	}
	a := answers[dice.IntN(len(answers))]
	if dice.IntN(3) > 0 {
		used, said := dice.IntN(in+1), dice.IntN(out+1)
		read := dice.IntN(used + 1)
		a.Reply.Usage = llm.Usage{InputTokens: &used, OutputTokens: &said, CachedInputTokens: read, CacheWriteTokens: dice.IntN(used - read + 1)}
	}
	return a
}

// TestBoundOfExtras has an agent take every turn beyond MaxTurns: after calls written as text, after answers that repeat
// themselves, and to repair an answer. It is tried again when it fails. The run costs exactly its bound.
func TestBoundOfExtras(t *testing.T) {
	const window, output = 500, 500
	stuck := strings.Repeat("a", 1000+64) // trips the default watcher
	long := strings.Repeat("a b c d e f g h i j k l m n o p q r s t u v w x y z ", 60) + stuck
	text, calls := llm.Reply{Text: `<tool_call>{"name": "look", "arguments": {}}</tool_call>`}, llm.Reply{ToolCalls: []llm.ToolCall{{Name: "look", Input: []byte("{}")}}}
	trips := llm.Reply{Text: long} // whose usage is estimated
	replies := []llm.Reply{trips, text, trips, calls, trips, text, calls, text, calls, calls, {Text: "no answer"}, {Text: `{"answer": 1}`}}
	asked := 0
	m := script.Func(func(n int, _ *llm.Request) script.Answer {
		in, out := window, output
		reply := replies[n]
		if asked++; reply.Text != long {
			reply.Usage = llm.Usage{InputTokens: &in, OutputTokens: &out}
		}
		return script.Answer{Reply: reply}
	})
	paid := agent.Use(agent.Tool{Tool: llm.Tool{Name: "look", Description: "looks", Schema: []byte(`{"type":"object"}`)},
		Run: func(context.Context, json.RawMessage) (agent.Result, error) {
			return agent.Result{Text: "nothing"}, nil
		}})
	p := agent.New("agent", boundSaid, named{"m", m}, agent.Config{User: agent.Say(strings.Repeat("x", 4*window)), MaxTurns: 5, Use: []agent.Middleware{paid}})
	ctx := llm.WithTable(t.Context(), func(llm.Info) llm.Spec {
		return llm.Spec{Window: window, Output: output, Price: &budget.Price{In: 1, Out: 3}}
	})
	account := budget.New(budget.Limits{})
	if _, err := stone.Run(budget.With(ctx, account), p, stone.Config{}); err != nil {
		t.Fatal(err)
	}
	usd, known := p.Bound(ctx, stone.Given{}).USD()
	if spent := account.Spent().USD; !known || asked != 12 || spent > usd*(1+1e-9) || spent < usd*(1-1e-9) {
		t.Errorf("%d requests cost %v, the bound is %v %v", asked, spent, usd, known)
	}
}

// TestBoundIsOpen names what has no bound.
func TestBoundIsOpen(t *testing.T) {
	ctx := llm.WithTable(t.Context(), func(i llm.Info) llm.Spec {
		return map[string]llm.Spec{"dear": {Window: 1000, Price: &budget.Price{In: 1}}, "wide": {Price: &budget.Price{In: 1}}, "narrow": {Window: 1000}}[i.Model]
	})
	asks := func(name string, use ...agent.Middleware) stone.Ashlar {
		return agent.New("a", boundSaid, named{name, script.New()}, agent.Config{User: agent.Say("hello"), Use: use})
	}
	to := func(c call.Capability, plans call.Planner) stone.Ashlar {
		return call.New("c", boundSaid, call.Spec{Applicator: &call.Applicator{Registry: call.NewRegistry(c), Plans: plans}, Intent: "say"})
	}
	invoke := func(context.Context, *call.Request) (*call.Reply, error) { return nil, nil }
	self := &call.Applicator{}
	self.Registry = call.NewRegistry(call.Pipeline(call.Metadata{ID: "again"}, call.New("again", boundSaid, call.Spec{Applicator: self, Intent: "say"}), boundSaid, boundSaid))
	wraps := agent.Middleware{Name: "twice", Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
		return next(ctx, c)
	}}
	for _, test := range []struct {
		name string
		p    stone.Ashlar
		want string // "" for a bound
	}{
		{"priced", asks("dear"), ""},
		{"no window", asks("wide"), "the window of wide is unknown"},
		{"no price", asks("narrow"), "the price of narrow is unknown"},
		{"several models", agent.New("a", boundSaid, llm.Fallback(named{"dear", script.New()}, named{"wide", script.New()}), agent.Config{User: agent.Say("hello")}), "the window of wide is unknown"},
		{"middleware", asks("dear", wraps), "the middleware twice of a declares no bound"},
		{"quote", to(call.Capability{Metadata: call.Metadata{ID: "q"}, Invoke: invoke, Quote: func(context.Context, *call.Request) budget.Quote { return budget.Quote{} }}, nil), "what q costs is known only when it is asked"},
		{"by tokens", to(call.Capability{Metadata: call.Metadata{ID: "q", Cost: call.Cost{Price: budget.Price{In: 1}}}, Invoke: invoke}, nil), "what q costs is known only when it is asked"},
		{"by invocation", to(call.Capability{Metadata: call.Metadata{ID: "q", Cost: call.Cost{USD: 1}}, Invoke: invoke}, nil), ""},
		{"plans", to(call.Capability{Metadata: call.Metadata{ID: "q", CanProduce: []string{call.Value, call.Plan}}, Invoke: invoke}, plan.Planner(plan.Options{})), "q may answer with a plan"},
		{"itself", call.New("c", boundSaid, call.Spec{Applicator: self, Intent: "say"}), "again is answered by itself"},
		{"repeated", stone.Scoped("often", stone.Walk{}.Repeat(asks("dear")), func(_ context.Context, d dag.DAG) (dag.DAG, error) { return d, nil }), "there is no limit on how often often runs a"},
		{"no bound", stone.Func0("l", boundDone, func(context.Context) (int, error) { return 1, nil }, stone.Detail{Unpriced: func(context.Context) []string { return nil }}), "the package that made l declares no bound"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := test.p.Bound(ctx, stone.Given{})
			if _, known := b.USD(); known != (test.want == "") || strings.Join(b.Open(), "; ") != test.want {
				t.Errorf("%s, open %q, want %q", b, b.Open(), test.want)
			}
		})
	}
}

// TestBoundOfRetry has a leaf fail after it has paid, as often as it is tried.
func TestBoundOfRetry(t *testing.T) {
	price := budget.Fixed(budget.Amount{USD: 0.5})
	leaf := stone.Func0("pay", boundDone, func(ctx context.Context) (int, error) {
		draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx), "pay", price)
		if err != nil {
			return 0, err
		}
		defer draw.Close()
		_, err = stone.Step(draw.Context(ctx), "pay", 1, func(context.Context, int) (int, error) {
			return 0, budget.Costly(errors.Join(errors.New("broken"), draw.Begin()), budget.Usage{USD: 0.5})
		})
		used, _ := budget.CostOf(err)
		draw.End(used)
		return 0, err
	}, stone.Retry{Attempts: 3}, stone.Detail{Bound: func(context.Context, func(stone.Ashlar) budget.Bound) budget.Bound { return budget.AtMost(0.5) }})
	account := budget.New(budget.Limits{})
	if _, err := stone.Run(budget.With(t.Context(), account), leaf, stone.Config{}); err == nil {
		t.Fatal("it did not fail")
	}
	if usd, known := leaf.Bound(t.Context(), stone.Given{}).USD(); !known || usd != 1.5 || account.Spent().USD != usd {
		t.Errorf("%v spent, the bound is %v %v", account.Spent().USD, usd, known)
	}
}

// The lanes of a Map are counted only if its list is known: without an input, nothing says that it is empty.
func TestBoundOfList(t *testing.T) {
	item, extra, part, work := dag.NewType[string]("item"), dag.NewType[string]("extra"), dag.NewType[string]("part"), dag.NewType[string]("work")
	paid := stone.Func("paid", part, work, func(_ context.Context, in string) (string, error) { return in, nil },
		stone.Detail{Bound: func(context.Context, func(stone.Ashlar) budget.Bound) budget.Bound { return budget.AtMost(0.5) }})
	of := func(given dag.DAG, list dag.Reader[[]string]) string {
		return stone.Map("each", list, part, paid).Bound(t.Context(), stone.Config{Input: given}.Given()).String()
	}
	input, err := item.Append(dag.DAG{}, "a")
	if err == nil {
		input, err = item.Append(input, "b")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		given dag.DAG
		list  dag.Reader[[]string]
		want  string
	}{
		{input, dag.All(item), "1.00"},
		{dag.DAG{}, dag.All(item), "0.50 × each"},
		{input, dag.All(extra), "0.50 × each"},
	} {
		if got := of(test.given, test.list); got != test.want {
			t.Errorf("%d nodes: %q, want %q", test.given.Len(), got, test.want)
		}
	}
}
