package plan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/x/cel"
)

// echo answers with what it was asked.
func echo(_ context.Context, req *call.Request) (*call.Reply, error) {
	return &call.Reply{Out: req.Input}, nil
}

func read(t *testing.T, text string) *plan.Plan {
	t.Helper()
	p, err := plan.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func compile(t *testing.T, app *call.Applicator, text string, opts plan.Options) stone.Ashlar {
	t.Helper()
	a, err := read(t, text).Ashlar(app, opts)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func registry(behaviours map[string]func(*call.Request) (string, error)) *call.Applicator {
	var caps []call.Capability
	for id, answer := range behaviours {
		m := call.Metadata{ID: id, Kind: "go", CanProduce: []string{call.Value, call.Plan}}
		caps = append(caps, call.Capability{Metadata: m, Invoke: func(_ context.Context, req *call.Request) (*call.Reply, error) {
			text, err := answer(req)
			if strings.Contains(text, ":nodes") {
				return &call.Reply{Type: call.Plan, Plan: []byte(text)}, err
			}
			return &call.Reply{Out: call.JSON(text)}, err
		}})
	}
	return &call.Applicator{Language: cel.Language, Registry: call.NewRegistry(caps...)}
}

// A plan's names and paths are its nodes' names and paths, in every mode.
func TestPathsAreThoseOfNodes(t *testing.T) {
	p, err := plan.Read([]byte(`{:id "all" :nodes [
		{:op :let :value [1 2] :as :xs}
		{:op :map :over {:slot/id :xs} :as :x :body [{:op :let :value {:slot/id :x} :as :y}]}
		{:op :reduce :body [{:op :let :value {:slot/id :y} :as :ys}]}
		{:op :parallel :lanes [[{:op :let :value 1 :as :p1}] [{:op :let :value 2 :as :p2}]]}
		{:op :reduce :body [{:op :let :value [{:slot/id :p1} {:slot/id :p2}] :as :both}]}
		{:op :call :intent :a/b :input {} :as :b :dispatch {:allow-failure? true} :when "size(xs) > 2"}
		{:op :loop :max 3 :until {:present? :n} :body [{:op :let :value 1 :as :n}]}
		{:op :emit :id :end :input {:ys :ys}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{plan.Strict, plan.Hybrid, plan.Lazy} {
		a, err := p.Ashlar(&call.Applicator{Language: cel.Language}, plan.Options{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(a.Names(), " "), "all xs x y reduce-3 ys parallel-4 p1 p2 reduce-5 both b loop-7 n end"; got != want {
			t.Errorf("%s: names %s, want %s", mode, got, want)
		}
		var paths []string
		for path := range tree.Paths(a) {
			paths = append(paths, strings.Join(path, " "))
		}
		want := []string{
			"xs y ys p1 both b n end", "xs y ys p1 both n end",
			"xs y ys p2 both b n end", "xs y ys p2 both n end",
		}
		if diff := cmp.Diff(want, paths); diff != "" {
			t.Errorf("%s: paths (-want +got):\n%s", mode, diff)
		}
		if n := tree.CountPaths(a); n.Int64() != int64(len(want)) {
			t.Errorf("%s: %v paths are counted, want %d", mode, n, len(want))
		}
	}
}

// A plan has no input but its slots, whatever it writes of its own.
func TestInputsAreSlots(t *testing.T) {
	for text, want := range map[string]string{
		`{:nodes [{:op :let :value 1 :as :x} {:op :emit :input {:v {:slot/id :x}}}]}`:                  "",
		`{:nodes [{:op :emit :input {:v {:slot/id :n}} :when {:present? :n}}]}`:                        "n?",
		`{:nodes [{:op :tool :tool/id :t/x :input {:n {:slot/id :n}}} {:op :emit :input {:v :done}}]}`: "done? n",
	} {
		a := compile(t, &call.Applicator{Language: cel.Language}, text, plan.Options{})
		var got []string
		for _, in := range tree.Inputs(a) {
			name := in.Type.Name()
			if in.Optional {
				name += "?"
			}
			got = append(got, name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has the inputs %q, want %q", text, got, want)
		}
		for _, q := range a.QueriesAll() {
			if name := q.Type().Name(); dag.Reserved(name) && name != "stone/prompts" && !strings.HasPrefix(name, "stone/failed/") {
				t.Errorf("%s reads %q from outside", text, name)
			}
		}
		if f := stone.Validate(stone.Seq("p", a, a), stone.Given{}); strings.Contains(fmt.Sprint(f), "stone/") {
			t.Errorf("%s: findings about its own nodes: %v", text, f)
		}
	}
}

// A plan stands between two steps in Go: it reads what the first produces, and the
// last one reads what it produces.
func TestBetweenGo(t *testing.T) {
	type order struct {
		Item  string `json:"item"`
		Count int    `json:"count"`
	}
	type price struct {
		Total int `json:"total"`
	}
	ordered, priced, told := dag.NewType[order]("order"), dag.NewType[price]("price"), dag.NewType[string]("told")
	app := registry(map[string]func(*call.Request) (string, error){
		"shop/till": func(req *call.Request) (string, error) {
			var in struct{ N int }
			err := json.Unmarshal(req.Input, &in)
			return fmt.Sprintf(`{"total":%d}`, 3*in.N), err
		},
	})
	p := compile(t, app, `{:id "price" :nodes [
		{:op :call :intent :shop/price :cap/id :shop/till :input {:n {:slot/id [:order :count]}} :as :price}
		{:op :emit :input {:slot/id :price}}]}`, plan.Options{})
	pipeline := stone.Seq("shop",
		stone.Func0("read", ordered, func(context.Context) (order, error) { return order{"tea", 4}, nil }),
		p,
		stone.Func2("tell", ordered, priced, told, func(_ context.Context, o order, p price) (string, error) {
			return fmt.Sprintf("%d %s: %d", o.Count, o.Item, p.Total), nil
		}),
	)
	if findings := stone.Validate(pipeline, stone.Given{}); len(findings) > 0 {
		t.Errorf("findings: %v", findings)
	}
	result, err := stone.Run(t.Context(), pipeline, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := told.From(result.DAG); err != nil || got != "4 tea: 12" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Without the step that produces what a plan reads, the pipeline around it is
// refused.
func TestValidateAroundPlan(t *testing.T) {
	p := compile(t, &call.Applicator{Language: cel.Language}, `{:nodes [{:op :emit :input {:slot/id [:order :count]}}]}`, plan.Options{})
	findings := stone.Validate(stone.Seq("shop", p), stone.Given{})
	if len(findings.Errors()) != 1 || findings[0].Type != "missing-producer" || findings[0].Queried != "order" {
		t.Errorf("findings: %v", findings)
	}
}

func TestFindings(t *testing.T) {
	p := read(t, `{:nodes [
 {:op :call :intent :a/b :cap/id :c/x :done {:must #{:non-empty :c/none}} :as :r}
 {:op :emit :input {:text [1 {:slot/id [:rr :text]}]}}
 {:op :emit :input 1 :whenn true}
 {:op :emit :input 1 :when "size(r"}
 {:op :tool :tool/id :t/x :effects {:allowed #{:fs/write}}}
 {:op :leet :value 1}]}`)
	app := registry(map[string]func(*call.Request) (string, error){"c/x": nil})
	app.Tools = app.Registry
	var got []string
	for _, f := range p.Check(app, plan.Options{}, stone.Config{Grant: []string{}}).Errors() {
		got = append(got, fmt.Sprintf("%s %s %.30s", f.Type, f.Path, f.Message))
	}
	text := strings.Join(got, "\n")
	for _, want := range []string{
		`unknown-check nodes[0].done.must[1] 2:65:`,
		`missing-producer nodes[1].input.text[1] 3:30:`,
		`unknown-field nodes[2].whenn 4:22:`,
		`bad-expression nodes[3].when 5:28:`,
		`effect-not-granted nodes[4].effects`,
		`unknown-op nodes[5].op 7:7:`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %s in\n%s", want, text)
		}
	}
}

// What is read again from what a plan prints is the same plan.
func TestPrintsItself(t *testing.T) {
	for _, text := range []string{
		`{:nodes [{:op :emit :input {:a :answer :b {:slot/record [:x :out 0]} :c [":x" :y {:z 1.50M}]}} {:op :let :value nil :as :x}]}`,
		`{"id": "j", "nodes": [{"op": "emit", "input": {"a": ":answer", "b": "answer", ":k": null}}]}`,
		string(thousand()),
		`{:nodes [{:op :call :intent :a/b :cache {:max-age-ms 0}} {:op :call :intent :a/b :cache {:max-age-ms 1500}}]}`,
		`{:nodes [{:op :call :intent :a/b :cap/id {:slot/path [:x :who]}} {:op :call :intent :a/b :dispatch {:candidates [:c/d {:slot/id :x} {:slot/record [:y :cap/id]}]}}]}`,
		`{:nodes [{:op :apply :plan {:slot/id [:x :plan]} :input {:n {:slot/id :n}} :as :r :output {:schema :a/b} :effects {:allowed #{:net}} :budget {:max-usd 1} :done {:must [:json]} :dispatch {:allow-failure? true}}]}`,
		`{:nodes [{:op :call :intent :a/b :as :r :output {:schema :res/text} :requires {:cap/tags #{:b :a}} :budget {:max-usd 0.5 :max-tokens 0 :latency-ms 20}
		  :dispatch {:strategy :race :hedge-ms 20 :switch-on #{} :retry {:same-cap-max 0} :repair {:max 2} :allow-failure? false} :effects {:allowed #{:none}}
		  :context {:a {:slot/id :q}} :done {:should #{:x} :score-min 1}}
		 {:op :match :on {:slot/id [:r :k]} :branches {:a [] "b" [{:op :emit :input 1}] 3 [] nil []}}
		 {:op :parallel :lanes [[{:op :ask :question "?" :choices ["y"] :as :q}] []] :when {:failed? :r}} {:op :reduce :body []}
		 {:op :map :over [1] :as :i :body [{:op :loop :until "i > 1" :max 3 :body []}]} {:op :reduce :body []}]}`,
	} {
		p := read(t, text)
		if p.Digest() == "" {
			t.Errorf("%.60s: %.500v", text, p.Check(nil, plan.Options{}, stone.Config{}))
			continue
		}
		edn, err := p.EDN()
		if err != nil {
			t.Fatal(err)
		}
		js, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, again := range []string{p.String(), string(edn), string(js)} {
			if q := read(t, again); q.Digest() != p.Digest() {
				t.Errorf("%.60s: printed as\n%s\nwhich reads as\n%s", text, again, q)
			}
		}
	}
}

// Notation, order of fields and what goes without saying do not change the digest;
// what is said does.
func TestDigest(t *testing.T) {
	same := []string{
		`{:nodes [{:op :call :intent :a/b :as :r :input {:x [1 {:slot/id [:q :z 0]}] :y :k}}]}`,
		`{:nodes [{:as :r, :input {:y "k" "x" (1 {:slot/path [:q :z 0]})}, :dispatch {:strategy :cascade} :op :call :intent :a/b :effects {:allowed #{}}}]}`,
		`{"nodes": [{"op": ":call", "as": "r", "intent": "a/b", "input": {"x": [1, {"slot/id": ["q", ":z", 0]}], "y": "k"}}]}`,
	}
	for _, text := range same[1:] {
		if a, b := read(t, same[0]), read(t, text); a.Digest() != b.Digest() || a.Digest() == "" {
			t.Errorf("%s and %s differ", a, b)
		}
	}
	if a, b := read(t, same[0]), read(t, strings.Replace(same[0], ":k", ":l", 1)); a.Digest() == b.Digest() {
		t.Error("two plans have one digest")
	}
}

// A plan that a model wrote is run by the same path, and a run that was killed
// within it is resumed with the same ids, and without asking anybody again.
func TestModelsPlanResumes(t *testing.T) {
	asked := map[string]int{}
	killed, kill := context.WithCancel(t.Context())
	app := registry(map[string]func(*call.Request) (string, error){
		"model/writer": func(*call.Request) (string, error) {
			asked["writer"]++
			return `{:nodes [{:op :call :intent :x/look :cap/id :eye/one :as :seen}
				{:op :call :intent :x/think :cap/id :mind/one :input {:seen {:slot/id :seen} :topic {:slot/id :topic}} :as :thought}
				{:op :emit :input {:slot/id :thought}}]}`, nil
		},
		"eye/one": func(*call.Request) (string, error) { asked["eye"]++; return `{"saw":"a heron"}`, nil },
		"mind/one": func(req *call.Request) (string, error) {
			if asked["mind"]++; asked["mind"] == 1 {
				kill()
				return "", killed.Err()
			}
			return string(req.Input), nil
		},
	})
	in, err := plan.Bind(dag.DAG{}, map[string]any{"topic": "birds"})
	if err != nil {
		t.Fatal(err)
	}
	text := `{:nodes [{:op :call :intent :x/plan :cap/id :model/writer :as :answer} {:op :emit :input {:slot/id :answer}}]}`
	p := compile(t, app, text, plan.Options{Slots: []string{"topic"}})
	memory := memdb.New(t)
	cfg := stone.Config{Input: in, RunID: "once", Grant: []string{}}
	if _, err := stone.Run(killed, p, kept(cfg, memory)); err == nil {
		t.Fatal("the run was not killed")
	}
	resumed, err := stone.Run(t.Context(), p, kept(cfg, memory))
	if err != nil {
		t.Fatal(err)
	}
	if asked["writer"] != 1 || asked["eye"] != 1 || asked["mind"] != 2 {
		t.Errorf("asked %v", asked)
	}
	cfg.RunID = "anew"
	fresh, err := stone.Run(t.Context(), p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if resumed.Node.ID() != fresh.Node.ID() {
		t.Errorf("a resumed run ends in %s, a fresh one in %s", resumed.Node, fresh.Node)
	}
	if thoughts, err := resumed.DAG.All("thought"); err != nil || len(thoughts) != 1 {
		t.Errorf("the nodes of the plan that was answered are not in the DAG: %v, %v", thoughts, err)
	}
}

func TestBindRefuses(t *testing.T) {
	for name, value := range map[string]any{"auth/user": 1, "": 1, "x": make(chan int)} {
		if d, err := plan.Bind(dag.DAG{}, map[string]any{"a": 1, name: value}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("%q: %v, %d nodes", name, err, d.Len())
		}
	}
}

func Example() {
	text := []byte(`{:id "greet"
	  :nodes [{:op :call :intent :text/greet :input {:name {:slot/id :guest}} :as :card}
	          {:op :emit :input {:final :card}}]}`)
	greeter := call.Func(call.Metadata{ID: "go/greeter", Intents: []string{"text/greet"}},
		func(_ context.Context, in struct{ Name string }) (string, error) {
			return "Hello, " + in.Name + "!", nil
		})
	app := &call.Applicator{Language: cel.Language, Registry: call.NewRegistry(greeter)}

	p, err := plan.Read(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	input, err := plan.Bind(dag.DAG{}, map[string]any{"guest": "Iva"})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := stone.Config{Input: input, Grant: []string{}}
	if err := p.Check(app, plan.Options{}, cfg).Err(); err != nil {
		fmt.Println(err)
		return
	}
	greet, err := p.Ashlar(app, plan.Options{Slots: []string{"guest"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := stone.Run(context.Background(), greet, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	final, err := plan.Emission.From(result.DAG)
	fmt.Println(string(final), err)
	// Output: {"final":"Hello, Iva!"} <nil>
}

// kept is a Config with which a run is kept in j.
func kept(cfg stone.Config, j journal.Journal) stone.Config {
	cfg.Recorder = journal.Keep(j, journal.Options{})
	return cfg
}
