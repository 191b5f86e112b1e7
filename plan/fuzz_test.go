package plan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/test/cputime"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/x/cel"
)

// FuzzCheck checks that nothing makes the checker panic, and that what a plan prints
// is read again as the same plan.
func FuzzCheck(f *testing.F) {
	files, _ := filepath.Glob(filepath.FromSlash("testdata/cases/*.edn"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		v, err := edn.Read(data, edn.Limits{})
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range v.Elements() {
			if nodes, ok := c.Field("nodes"); ok {
				f.Add("{:nodes " + nodes.String() + "}")
			}
			if text, ok := c.Field("json"); ok {
				f.Add(text.Text())
			}
		}
	}
	f.Add(`{:nodes [{:op :ask :question ["a " {:slot/id :x} {:cel "x + 1"}] :as :q} {:op :emit :input {:t {:slot/text ["a" :q]} "cel" "1"}}]}`)
	f.Add(`{"nodes": [{"op": "emit", "input": {"cel": "x", "t": {"cel": "x"}, "u": {"slot/text": ["{{x}}"]}}}]}`)
	app := models()
	f.Fuzz(func(t *testing.T, text string) {
		p, err := plan.Read([]byte(text))
		if err != nil {
			return
		}
		p.Check(app, plan.Options{Slots: []string{"x", "a-b"}}, stone.Config{Grant: []string{}})
		if p.Digest() == "" {
			return
		}
		printed, err := p.EDN()
		if err != nil {
			t.Fatalf("it cannot be printed: %v", err)
		}
		prints := []string{p.String(), string(printed)}
		if js, err := p.JSON(); err == nil {
			prints = append(prints, string(js))
		}
		for _, again := range prints {
			q, err := plan.Read([]byte(again))
			if err != nil {
				t.Fatalf("what it prints cannot be read: %v\n%s", err, again)
			}
			if q.Digest() != p.Digest() {
				t.Fatalf("printed as\n%s\nwhich reads as\n%s\n%.2000v", again, q, q.Check(app, plan.Options{}, stone.Config{}))
			}
		}
	})
}

// The modes differ in when nodes run, never in what is written.
func TestModesGiveTheSame(t *testing.T) {
	app := &call.Applicator{Language: cel.Language}
	app.Registry = call.NewRegistry(call.Capability{
		Metadata: call.Metadata{ID: "c/x", Kind: "go"},
		Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
			if strings.Contains(string(req.Input), `"fail":true`) {
				return nil, &call.Error{Type: "c/broken"}
			}
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
			return &call.Reply{Out: req.Input}, nil
		},
	})
	for seed := range uint64(40) {
		text := randomPlan(rand.New(rand.NewPCG(seed, 7)))
		var want, emitted string
		for _, mode := range []string{plan.Strict, plan.Hybrid, plan.Lazy} {
			opts := plan.Options{Mode: mode}
			p := read(t, text)
			if err := p.Check(app, opts, stone.Config{}).Err(); err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}
			a, err := p.Ashlar(app, opts)
			if err != nil {
				t.Fatal(err)
			}
			result, err := stone.Run(t.Context(), a, stone.Config{})
			if err != nil {
				t.Fatalf("seed %d, %s: %v\n%s", seed, mode, err, text)
			}
			out, err := plan.Emission.From(result.DAG)
			if err != nil {
				t.Fatal(err)
			}
			// The record of an allowed failure says how long the call took, and so
			// decides the ids of all that comes after it.
			got := ids(result.DAG, !strings.Contains(text, ":fail true"))
			if want == "" {
				want, emitted = got, string(out)
			}
			if got != want || string(out) != emitted {
				t.Errorf("seed %d: %s emits %s and not %s, or writes other nodes:\n%s\nand not\n%s\n%s", seed, mode, out, emitted, got, want, text)
			}
		}
	}
}

// ids lists the nodes, or only their types.
func ids(d dag.DAG, all bool) string {
	var b strings.Builder
	for n := range d.Nodes() {
		if all {
			fmt.Fprintf(&b, "%s ", n.ID())
		}
		fmt.Fprintln(&b, n.Type())
	}
	return b.String()
}

// randomPlan makes a plan that is valid and does not fail.
func randomPlan(r *rand.Rand) string {
	g := &planMaker{Rand: r, sure: []string{"s0"}}
	g.WriteString(`{:nodes [{:op :let :value 0 :as :s0}
		{:op :let :value {:cap/id :c/x :because {:slot/id :s0}} :as :who}
		{:op :let :value "{:nodes [{:op :call :intent :a/b :cap/id :c/x :input {:v {:slot/id :v}} :as :x} {:op :emit :input {:slot/id :x}}]}" :as :program}`)
	g.sequence(3 + r.IntN(8))
	fmt.Fprintf(g, "{:op :emit :input {:last :%s :all [%s]}}]}", g.any(), g.slots())
	return g.String()
}

type planMaker struct {
	*rand.Rand
	strings.Builder
	sure  []string
	names int
	depth int
}

func (g *planMaker) any() string { return g.sure[g.IntN(len(g.sure))] }

func (g *planMaker) slots() string {
	var b strings.Builder
	for _, name := range g.sure {
		fmt.Fprintf(&b, "{:slot/id :%s} ", name)
	}
	return b.String()
}

func (g *planMaker) name() string {
	g.names++
	return fmt.Sprintf("n%d", g.names)
}

func (g *planMaker) sequence(n int) {
	for range n {
		g.node()
	}
}

// inside writes nodes whose slots are not there outside.
func (g *planMaker) inside(n int) {
	g.depth++
	before := len(g.sure)
	g.sequence(n)
	g.sure = g.sure[:before:before]
	g.depth--
}

func (g *planMaker) node() {
	kind := g.IntN(12)
	if g.depth > 2 {
		kind = g.IntN(4)
	}
	name := g.name()
	switch kind {
	case 0:
		fmt.Fprintf(g, "\n{:op :let :value [{:slot/id :%s} %d] :as :%s}", g.any(), g.IntN(9), name)
		g.sure = append(g.sure, name)
	case 1, 2:
		fmt.Fprintf(g, "\n{:op :call :intent :a/b :cap/id :c/x :input {:v {:slot/id :%s} :n %d} :as :%s}", g.any(), g.names, name)
		g.sure = append(g.sure, name)
	case 3:
		fmt.Fprintf(g, "\n{:op :call :intent :a/b :cap/id :c/x :input {:v {:slot/id :%s} :n %d :fail %t} :as :%s :dispatch {:allow-failure? true}}", g.any(), g.names, g.IntN(2) == 0, name)
		fmt.Fprintf(g, "\n{:op :emit :input {:%s {:slot/id :%[1]s}} :when {:present? :%[1]s}}", name)
	case 4:
		fmt.Fprintf(g, "\n{:op :seq :body [{:op :let :value 1 :as :%s}", name)
		g.inside(1 + g.IntN(3))
		g.WriteString("]}")
		g.sure = append(g.sure, name)
	case 5:
		fmt.Fprintf(g, "\n{:op :seq :when \"%d > 4\" :body [", g.IntN(9))
		g.inside(1 + g.IntN(3))
		g.WriteString("]}")
	case 6:
		fmt.Fprintf(g, "\n{:op :parallel :lanes [[{:op :let :value 1 :as :%s}", name)
		g.inside(g.IntN(3))
		fmt.Fprintf(g, "] [{:op :let :value 2 :as :%sb}", name)
		g.inside(1 + g.IntN(2))
		fmt.Fprintf(g, "]]}\n{:op :reduce :body [{:op :let :value {:slot/id :%s} :as :%[1]sc}]}", name)
		g.sure = append(g.sure, name+"c", name+"b")
	case 7:
		fmt.Fprintf(g, "\n{:op :map :over [1 2 3] :as :%si :body [{:op :call :intent :a/b :cap/id :c/x :input {:i {:slot/id :%[1]si}} :as :%[1]s}", name)
		g.inside(g.IntN(2))
		fmt.Fprintf(g, "]}\n{:op :reduce :body [{:op :emit :input {:slot/id :%s}}]}", name)
		g.sure = append(g.sure, name)
	case 8:
		fmt.Fprintf(g, "\n{:op :match :on {:slot/id :s0} :branches {0 [{:op :let :value 5 :as :%s}", name)
		g.inside(g.IntN(3))
		fmt.Fprintf(g, "] 1 [{:op :let :value 6 :as :%s}]}}", name)
		g.sure = append(g.sure, name)
	case 9:
		fmt.Fprintf(g, "\n{:op :loop :max 3 :until {:present? :%s} :body [{:op :let :value 1 :as :%[1]s}", name)
		g.inside(g.IntN(3))
		g.WriteString("]}")
		g.sure = append(g.sure, name)
	case 10:
		fmt.Fprintf(g, "\n{:op :call :intent :a/b :cap/id {:slot/id :who} :input {:v {:slot/id :%s}} :as :%s}", g.any(), name)
		g.sure = append(g.sure, name)
	case 11:
		fmt.Fprintf(g, "\n{:op :apply :plan {:slot/id :program} :input {:v {:slot/id :%s}} :as :%s}", g.any(), name)
		g.sure = append(g.sure, name)
	}
}

// Hostile plans are refused with a typed error, soon, before they have any effect.
func TestHostile(t *testing.T) {
	asked := 0
	app := registry(map[string]func(*call.Request) (string, error){"c/x": func(*call.Request) (string, error) { asked++; return "{}", nil }})
	node := `{:op :call :intent :a/b :cap/id :c/x :effects {:allowed #{}}}`
	for name, text := range map[string]string{
		"100 MB":               `{:nodes [{:op :emit :input "` + strings.Repeat("x", 100<<20) + `"}]}`,
		"10,000 levels":        `{:nodes ` + strings.Repeat(`[{:op :seq :body `, 10_000) + `[]` + strings.Repeat(`}]`, 10_000) + `}`,
		"250 levels":           `{:nodes ` + strings.Repeat(`[{:op :seq :body `, 250) + `[` + node + `]` + strings.Repeat(`}]`, 250) + `}`,
		"deep data":            `{:nodes [` + node + `{:op :emit :input ` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}]}`,
		"many nodes":           `{:nodes [` + strings.Repeat(node, 30_000) + `]}`,
		"many faults":          `{:nodes [` + strings.Repeat(`{:op :fly :a 1}`, 50_000) + `]}`,
		"many guards":          `{:nodes [` + node + strings.Repeat(`{:op :emit :input 1 :when "nobody > 1"}`, 250) + `]}`,
		"exploding expression": `{:nodes [` + node + `{:op :emit :input 1 :when "` + strings.Repeat("(", 5000) + `1` + strings.Repeat(")", 5000) + ` > 0"}]}`,
		"no text":              "",
		"no UTF-8":             "{:nodes [\xff]}",
		"only a name":          ":nodes",
		"reserved":             `{:nodes [` + node + `{:op :let :value #{:root} :as :auth/user}]}`,
		"reserved, read":       `{:nodes [` + node + `{:op :emit :input {:slot/id :stone/plan}}]}`,
		"more than the grant":  `{:nodes [` + node + `{:op :call :intent :a/b :cap/id :c/x :effects {:allowed #{:fs/write}}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			took := cputime.Units(func() {
				var p *plan.Plan
				if p, err = plan.Read([]byte(text)); err == nil {
					err = p.Check(app, plan.Options{}, stone.Config{Grant: []string{}}).Err()
				}
			})
			t.Logf("%.1f units", took)
			if _, ok := err.(*stone.Invalid); !ok {
				t.Errorf("got %v, want a *stone.Invalid", err)
			} else if len(err.Error()) > 2000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if took > 100 {
				t.Errorf("took %.1f units of work", took)
			}
		})
	}
	if asked > 0 {
		t.Errorf("capabilities were invoked %d times", asked)
	}
}

// An expression that explodes while it runs fails its node, and nothing else.
func TestCostlyExpression(t *testing.T) {
	a := compile(t, &call.Applicator{Language: cel.Language}, `{:nodes [{:op :let :value [1 2 3 4 5 6 7 8 9 10] :as :xs}
		{:op :emit :input 1 :when "xs.all(a, xs.all(b, xs.all(c, xs.all(d, xs.all(e, xs.all(f, xs.all(g, a > 0)))))))"}]}`, plan.Options{})
	_, err := stone.Run(t.Context(), a, stone.Config{})
	var f *stone.Failure
	if !asFailure(err, &f) || f.Kind != "bad-expression" {
		t.Errorf("got %v", err)
	}
}

func asFailure(err error, to **stone.Failure) bool {
	f, ok := err.(*stone.Failure)
	*to = f
	return ok
}

// A plan is a capability: the input of the request is its slots.
func TestCapability(t *testing.T) {
	p := read(t, `{:id "double" :nodes [{:op :call :intent :m/add :cap/id :m/adder :input {:a {:slot/id :n} :b {:slot/id :n}} :as :sum}
		{:op :emit :input {:slot/id [:sum :total]}}]}`)
	double, err := plan.Capability(call.Metadata{ID: "plan/double", Intents: []string{"m/double"}}, p)
	if err != nil {
		t.Fatal(err)
	}
	adder := call.Func(call.Metadata{ID: "m/adder", Intents: []string{"m/add"}}, func(_ context.Context, in struct{ A, B int }) (map[string]int, error) {
		return map[string]int{"total": in.A + in.B}, nil
	})
	app := &call.Applicator{Language: cel.Language, Registry: call.NewRegistry(double, adder), Plans: plan.Planner(plan.Options{})}
	if err := app.Registry.Err(); err != nil {
		t.Fatal(err)
	}
	out := dag.NewType[int]("doubled")
	a := call.New("double", out, call.Spec{Applicator: app, Intent: "m/double", Input: dag.Derive(dag.Nothing, func(struct{}) any { return map[string]int{"n": 21} })})
	result, err := stone.Run(t.Context(), a, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := out.From(result.DAG); err != nil || got != 42 {
		t.Errorf("got %d, %v", got, err)
	}
	var m map[string]any
	if sums, err := result.DAG.All("sum"); err != nil || len(sums) != 1 || json.Unmarshal(sums[0].Content(), &m) != nil {
		t.Errorf("the nodes of the plan are not beside that of the call: %v, %v", sums, err)
	}
}
