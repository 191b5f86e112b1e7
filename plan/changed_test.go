package plan_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/x/cel"
)

// Edited is a world of edited plans. It answers each call with its input, and counts equal inputs.
type edited struct {
	mu   sync.Mutex
	seen map[string]int
	asks bool // within the plan that the capability cap/planner returns
}

const inner = `{:nodes [{:op :call :intent :x/do :cap/id :cap/echo :input {:id "within"} :as :within} %s{:op :emit :input {:final {:slot/id [:within :text]}}}]}`

func (e *edited) app() *call.Applicator {
	meta := call.Metadata{ID: "cap/echo", Kind: "go", CanProduce: []string{call.Value, call.Plan}}
	echo := call.Capability{Metadata: meta, Invoke: func(_ context.Context, req *call.Request) (*call.Reply, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.seen[string(req.Input)]++
		return &call.Reply{Out: call.JSON(fmt.Sprintf(`{"text":"ok","of":%s}`, req.Input))}, nil
	}}
	meta.ID, meta.Effects = "cap/planner", []string{"ask"}
	planner := call.Capability{Metadata: meta, Invoke: func(context.Context, *call.Request) (*call.Reply, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.seen["planner"]++
		question := ""
		if e.asks {
			question = `{:op :ask :question "inner?" :as :said} `
		}
		return &call.Reply{Type: call.Plan, Plan: fmt.Appendf(nil, inner, question)}, nil
	}}
	sub, err := plan.Read(fmt.Appendf(nil, inner, `{:op :ask :question "inner?" :as :said} `))
	if err != nil {
		panic(err)
	}
	byName, err := plan.Capability(call.Metadata{ID: "cap/sub", Effects: []string{"ask"}}, sub)
	if err != nil {
		panic(err)
	}
	return &call.Applicator{Language: cel.Language, Registry: call.NewRegistry(echo, planner, byName)}
}

// run runs a plan in a process of its own. People answer "yes", or nobody is there.
func (e *edited) run(t *testing.T, j *sqlite.DB, text string, opts plan.Options, answers bool) (string, error) {
	t.Helper()
	p, err := plan.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Ashlar(e.app(), opts)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	cfg := stone.Config{RunID: "run", Grant: []string{"ask"}}
	if answers {
		cfg.Frontend = yes{}
	}
	result, err := stone.Run(t.Context(), a, kept(cfg, j))
	if err != nil {
		return "", err
	}
	out, err := plan.Emission.From(result.DAG)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), nil
}

const editedPlan = `{:id "p" :nodes [
	{:op :call :intent :x/do :cap/id :cap/echo :input {:id "a"} :as :a}
	{:op :let :value {:n 1 :m 2} :as :b :when "a.text == 'other'"}
	{:op :call :intent :x/do :cap/id :cap/planner :input {} :as :planned}
	{:op :map :over [1 2] :as :item :all true :body [
		{:op :call :intent :x/do :cap/id :cap/echo :input {:id "each" :n {:slot/id :item}} :as :each}
		{:op :ask :question {:slot/text ["lane " {:slot/id :item}]} :as :lane}
		{:op :call :intent :x/do :cap/id :cap/echo :input {:id "late" :n {:slot/id :item} :said {:slot/id [:lane :response]}} :as :late}]}
	{:op :reduce :body [{:op :let :value {:slot/id :late} :as :all}]}
	{:op :seq :when {:present? :all} :body [{:op :call :intent :x/do :cap/id :cap/echo :input {:id "z" :all {:slot/id :all}} :as :z}]}
	{:op :emit :input {:planned :planned :all :all}}]}`

// A plan is edited while its run waits. What the run has not reached may change; a change of what it has passed is refused and
// named, and nothing is repeated.
func TestEditedPlan(t *testing.T) {
	replace := func(old, now string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, now, 1) }
	}
	for name, tt := range map[string]struct {
		edit func(string) string
		want string // of the refusal, or "" if the run continues
		more string // is asked once more than without the edit
	}{
		"whitespace and comments": {func(s string) string { return "; a plan\n" + strings.ReplaceAll(s, "\n", "\n\n  ; a comment\n") }, "", ""},
		"order of keys":           {replace(`:input {:id "a"} :as :a`, `:as :a :input {:id "a"}`), "", ""},
		"a node after":            {replace(`{:id "z" :all`, `{:id "zz" :all`), "", ""},
		"the emission":            {replace(`:planned :planned`, `:planned 7`), "", ""},
		"a guard after":           {replace(`:when {:present? :all}`, `:when "all != []"`), "", ""},
		"after in a lane":         {replace(`{:id "late"`, `{:id "later"`), "", ""},
		"inserted after":          {replace("\t{:op :seq", `{:op :call :intent :x/do :cap/id :cap/echo :input {:id "new"} :as :new} {:op :seq`), "", "new"},
		"removed after":           {replace(`{:op :call :intent :x/do :cap/id :cap/echo :input {:id "z" :all {:slot/id :all}} :as :z}`, `{:op :let :value {:text "ok"} :as :z}`), "", ""},
		"the value of a node that a guard skipped": {replace(`{:n 1 :m 2}`, `{:n 1 :m 3}`), "", ""},

		"a node before":       {replace(`{:id "a"}`, `{:id "A"}`), `the settings of p/a changed: input «{:id "a"}» → «{:id "A"}»`, ""},
		"before in a lane":    {replace(`{:id "each"`, `{:id "every"`), "the settings of p/item/each changed", ""},
		"the list of a map":   {replace(`:over [1 2]`, `:over [1 2 3]`), `the version of p/item changed from "[1 2]" to "[1 2 3]"`, ""},
		"the question":        {replace(`"lane "`, `"Lane "`), `the version of p/item/lane changed`, ""},
		"a guard before":      {replace(`a.text == 'other'`, `a.text == 'ok'`), "the guard of p/b changed", ""},
		"who is asked before": {replace(`:cap/id :cap/planner`, `:cap/id :cap/echo`), "the settings of p/planned changed", ""},
		"inserted before":     {replace(`{:op :call`, `{:op :call :intent :x/do :cap/id :cap/echo :input {:id "new"} :as :new} {:op :call`), "p/new was added", ""},
		"inserted in a lane":  {replace(`{:op :ask`, `{:op :let :value 1 :as :new} {:op :ask`), "p/item/new was added", ""},
		"removed before":      {replace(`{:op :call :intent :x/do :cap/id :cap/planner :input {} :as :planned}`, `{:op :let :value 3 :as :planned}`), "p/planned", ""},
	} {
		for _, mode := range []string{plan.Strict, plan.Hybrid, plan.Lazy} {
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				opts := plan.Options{Mode: mode}
				e := &edited{seen: map[string]int{}}
				j := memdb.New(t)
				if _, err := e.run(t, j, editedPlan, opts, false); !errors.Is(err, kind.Waiting) {
					t.Fatalf("the run waits: %v", err)
				}
				before := maps.Clone(e.seen)
				edited := tt.edit(editedPlan)
				if edited == editedPlan {
					t.Fatal("nothing is edited")
				}
				_, err := e.run(t, j, edited, opts, true)
				if tt.want != "" {
					if !errors.As(err, new(*journal.ChangedError)) || !strings.Contains(err.Error(), tt.want) || !maps.Equal(before, e.seen) {
						t.Fatalf("%v after %v, then %v; want %q", err, before, e.seen, tt.want)
					}
					_, err = e.run(t, j, editedPlan, opts, true)
				}
				if err != nil {
					t.Fatal(err)
				}
				for input, n := range e.seen {
					if n != 1 {
						t.Errorf("%s was asked %d times", input, n)
					}
				}
				if tt.more != "" && !slices.ContainsFunc(slices.Collect(maps.Keys(e.seen)), func(s string) bool { return strings.Contains(s, `"`+tt.more+`"`) }) {
					t.Errorf("%s was not asked: %v", tt.more, e.seen)
				}
			})
		}
	}
}

// A run waits in a plan that a capability returned, or in one called by name.
func TestEditedAroundPlan(t *testing.T) {
	for _, id := range []string{"cap/planner", "cap/sub"} {
		text := fmt.Sprintf(`{:nodes [{:op :call :intent :x/do :cap/id :cap/echo :input {:id "a"} :as :a} {:op :call :intent :x/do :cap/id :%s :input {} :effects {:allowed #{:ask}} :as :out}
			{:op :call :intent :x/do :cap/id :cap/echo :input {:id "z" :out {:slot/id :out}} :as :z} {:op :emit :input {:z {:slot/id [:z :of :id]}}}]}`, id)
		for edit, want := range map[string]string{`{:id "z"`: "", `{:id "a"`: "the settings of plan/a changed", ":cap/id :" + id: "the settings of plan/out changed"} {
			e := &edited{seen: map[string]int{}, asks: true}
			j := memdb.New(t)
			if _, err := e.run(t, j, text, plan.Options{}, false); !errors.Is(err, kind.Waiting) {
				t.Fatalf("the run waits: %v", err)
			}
			now := map[string]string{`{:id "z"`: `{:id "zz"`, `{:id "a"`: `{:id "A"`}[edit]
			if now == "" {
				now = ":cap/id :cap/echo"
			}
			out, err := e.run(t, j, strings.Replace(text, edit, now, 1), plan.Options{}, true)
			if want == "" && (err != nil || out != `{"z":"zz"}`) || want != "" && (!errors.As(err, new(*journal.ChangedError)) || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, %s: %s, %v; want %q", id, edit, out, err, want)
			}
			for input, n := range e.seen {
				if n != 1 {
					t.Errorf("%s, %s: %s was asked %d times", id, edit, input, n)
				}
			}
		}
	}
}

// A sketch is a random plan that can be edited.
type sketch struct {
	*rand.Rand
	last int
}

// A line is a node: its own text with a place for its value, and what is below it.
type line struct {
	name, text string // text has %d for the value and %s for the bodies
	value      int
	guard      string
	below      [][]*line
	calls      bool
	open       bool // unguarded, at the top: others may read it
}

func (s *sketch) name(kind string) string { s.last++; return fmt.Sprint(kind, s.last) }

// call is a call that reads a slot that is given, or nothing.
func (s *sketch) call(reads string) *line {
	name := s.name("c")
	if reads != "" {
		reads = " :r {:slot/id :" + reads + "}"
	}
	return &line{name: name, calls: true, text: fmt.Sprintf(`{:op :call :id %q :intent :x/do :cap/id :cap/echo :input {:id %[1]q :v %%d%s} :as :%[1]s%%s}`, name, reads)}
}

func (s *sketch) calls(reads string) (list []*line) {
	for range 1 + s.IntN(3) {
		c := s.call(reads)
		if s.IntN(4) == 0 {
			c.guard = fmt.Sprintf("%d == %d", s.IntN(2), s.IntN(2))
		}
		list = append(list, c)
	}
	return list
}

func (s *sketch) ask(reads string) *line {
	name := s.name("ask")
	question := `"go?"`
	if reads != "" {
		question = `{:slot/text ["go " {:slot/id :` + reads + `}]}`
	}
	return &line{name: name, text: fmt.Sprintf(`{:op :ask :id %q :question %s :as :%[1]s%%s}`, name, question)}
}

// grow makes the nodes of a plan in which somebody is asked.
func (s *sketch) grow() (nodes []*line) {
	var slots []string
	read := func() string {
		if len(slots) == 0 || s.IntN(2) == 0 {
			return ""
		}
		return slots[s.IntN(len(slots))]
	}
	asked := 2 + s.IntN(3)
	for i := range 6 + s.IntN(4) {
		body := func(reads string) []*line { return s.calls(reads) }
		asks := func(reads string) []*line {
			if i != asked {
				return body(reads)
			}
			return slices.Concat(body(reads), []*line{s.ask(reads)}, body(reads))
		}
		name := s.name("n")
		switch form := s.IntN(7); {
		case form == 0 || i == asked && form < 2:
			nodes = append(nodes, &line{name: name, text: fmt.Sprintf(`{:op :seq :id %q :body [%%s]}`, name), below: [][]*line{asks("")}})
		case form == 1:
			nodes = append(nodes, &line{name: name, text: fmt.Sprintf(`{:op :match :id %q :on %q :branches {"a" [%%s] "b" [%%s]}}`, name, []string{"a", "b"}[s.IntN(2)]), below: [][]*line{body(""), body("")}})
		case form == 2:
			nodes = append(nodes, &line{name: name, text: fmt.Sprintf(`{:op :map :id %q :over [1 2] :as :%[1]s :all true :body [%%s]}`, name), below: [][]*line{asks(name)}},
				&line{name: name + "r", text: fmt.Sprintf(`{:op :reduce :id "%sr" :body [%%s]}`, name), below: [][]*line{body("")}})
		case form == 3:
			nodes = append(nodes, &line{name: name, text: fmt.Sprintf(`{:op :parallel :id %q :all true :lanes [[%%s] [%%s]]}`, name), below: [][]*line{asks(""), body("")}},
				&line{name: name + "r", text: fmt.Sprintf(`{:op :reduce :id "%sr" :body [%%s]}`, name), below: [][]*line{body("")}})
		case form == 4:
			in := s.call("")
			nodes = append(nodes, &line{name: name, text: fmt.Sprintf(`{:op :loop :id %q :max 2 :until "%s.text == 'ok'" :body [%%s]}`, name, in.name), below: [][]*line{append([]*line{in}, asks("")...)}})
		case i == asked:
			ask := s.ask(read())
			nodes = append(nodes, ask)
			slots = append(slots, ask.name, ask.name) // so that the rest waits more often
		default:
			c := s.call(read())
			c.open = true
			slots = append(slots, c.name)
			nodes = append(nodes, c)
		}
	}
	return nodes
}

// written writes nodes.
func written(nodes []*line) string {
	var all []string
	for _, n := range nodes {
		var args []any
		if n.calls {
			args = append(args, n.value)
		}
		for _, b := range n.below {
			args = append(args, written(b))
		}
		if n.below == nil {
			guard := ""
			if n.guard != "" {
				guard = fmt.Sprintf(" :when %q", n.guard)
			}
			args = append(args, guard)
		}
		all = append(all, fmt.Sprintf(n.text, args...))
	}
	return strings.Join(all, "\n")
}

// emitting is the text of a plan that emits all slots at the top.
func emitting(nodes []*line) string {
	var fields []string
	for _, n := range nodes {
		if n.open || strings.HasPrefix(n.name, "ask") {
			fields = append(fields, ":"+n.name+" :"+n.name)
		}
	}
	return fmt.Sprintf("{:id \"p\" :nodes [%s\n{:op :emit :id \"out\" :input {%s}}]}", written(nodes), strings.Join(fields, " "))
}

// lists returns the list of nodes and all lists below it, in the order of the text.
func lists(nodes *[]*line) (all []*[]*line) {
	all = append(all, nodes)
	for _, n := range *nodes {
		for i := range n.below {
			all = append(all, lists(&n.below[i])...)
		}
	}
	return all
}

// TestEditedAnywhere edits random plans at random places while their runs wait. A run that continues repeats nothing and ends as
// a new run of the edited plan does. It is refused only if what is edited has started, or has a later node that has.
func TestEditedAnywhere(t *testing.T) {
	plans := uint64(30)
	if testing.Short() {
		plans = 15
	}
	refused, continued := 0, 0
	for seed := range plans {
		s := &sketch{Rand: rand.New(rand.NewPCG(seed, 7))}
		nodes := s.grow()
		text := emitting(nodes)
		opts := plan.Options{Mode: []string{plan.Strict, plan.Hybrid, plan.Lazy}[s.IntN(3)]}
		e := &edited{seen: map[string]int{}}
		j := memdb.New(t)
		if _, err := e.run(t, j, text, opts, false); !errors.Is(err, kind.Waiting) {
			t.Fatalf("seed %d: the run waits: %v\n%s", seed, err, text)
		}
		before := maps.Clone(e.seen)
		list := lists(&nodes)
		into := list[s.IntN(len(list))]
		at := s.IntN(len(*into))
		name := (*into)[at].name
		what := []string{"value", "insert", "remove", "guard"}[s.IntN(4)]
		switch n := (*into)[at]; {
		case what == "value" && n.calls:
			n.value++
		case what == "guard" && n.calls && !n.open:
			n.guard = map[string]string{"": "1 == 1"}[n.guard]
		case what == "remove" && n.calls && !n.open && len(*into) > 1:
			*into = slices.Delete(*into, at, at+1)
		default:
			what = "insert"
			c := s.call("")
			*into = slices.Insert(*into, at, c)
			name = c.name
		}
		now := emitting(nodes)
		started := func(of string) bool {
			return slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(in string) bool { return strings.Contains(in, fmt.Sprintf("%q", of)) })
		}
		p, err := plan.Read([]byte(now))
		if err != nil {
			t.Fatal(err)
		}
		if p.Check(e.app(), opts, stone.Config{}).Err() != nil {
			continue // the edit made a plan that cannot run
		}
		out, err := e.run(t, j, now, opts, true)
		about := fmt.Sprintf("seed %d, %s, %s of %s: %v\n%s\nnow\n%s\nbefore %v\nafter %v", seed, opts.Mode, what, name, err, text, now, before, e.seen)
		if errors.As(err, new(*journal.ChangedError)) {
			refused++
			after := now[max(0, strings.Index(now, fmt.Sprintf("%q", name))):]
			reason := what != "insert" && (started(name) || what == "guard") || strings.Contains(now, ":op :loop") || strings.Contains(now, ":op :parallel") ||
				!strings.Contains(now[strings.LastIndex(now, "\n"):], ":ask") // the emission has run
			for in := range before { // a later node has started
				var id string
				fmt.Sscanf(in, `{"id":%q`, &id)
				reason = reason || strings.Contains(after, fmt.Sprintf("%q", id))
			}
			if !reason || !strings.Contains(err.Error(), name) || !maps.Equal(before, e.seen) {
				t.Errorf("refused: %s", about)
			}
			continue
		}
		continued++
		fresh := &edited{seen: map[string]int{}}
		other := memdb.New(t)
		want, failed := fresh.run(t, other, now, opts, true)
		if err != nil || failed != nil || out != want || !maps.Equal(e.seen, fresh.seen) {
			t.Fatalf("continued: emitted %s, want %s: %s\nwant %v", out, want, about, fresh.seen)
		}
	}
	if refused < int(plans)/5 || continued < int(plans)/5 {
		t.Errorf("%d edits were refused and %d continued", refused, continued)
	}
}
