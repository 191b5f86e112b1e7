package stone_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/step"
)

// plot is a tree that was drawn once and is built several times, around Seq or
// around Flow.
type plot func(compose) stone.Ashlar

type compose func(name string, steps ...stone.Ashlar) stone.Ashlar

var (
	grains = func() (types []dag.Type[uint32]) {
		for i := range 5 {
			types = append(types, dag.NewType[uint32](fmt.Sprint("grain", i)))
		}
		return types
	}()
	chaff = dag.NewType[uint32]("chaff") // what plans leave
)

// grove draws plots. What a leaf returns follows from the contents that it reads.
type grove struct {
	*rapid.T
	*weather
	names int
}

// weather delays, counts and cancels the bodies of a grove.
type weather struct {
	delays bool
	calls  atomic.Int64
	crash  int64 // the call that cancels the run, 0 for none
	stop   func()
	plans  atomic.Int64 // that were run
	moved  atomic.Int64 // awaited with something to see
}

func (w *weather) blow(ctx context.Context) error {
	if w.calls.Add(1) == w.crash {
		w.stop()
	}
	if w.delays {
		time.Sleep(time.Duration(rand.IntN(150)) * time.Microsecond)
	}
	return ctx.Err()
}

func (g *grove) name(form string) string {
	g.names++
	return fmt.Sprint(form, g.names)
}

// upTo draws from 0 to n, all alike.
func (g *grove) upTo(n int) int {
	return int(rapid.Uint64().Draw(g.T, "n") * 0x9E3779B97F4A7C15 >> 33 % uint64(n+1))
}
func (g *grove) oneIn(n int) bool        { return g.upTo(n-1) == n-1 }
func (g *grove) grain() dag.Type[uint32] { return grains[g.upTo(len(grains)-1)] }

// one is the query of a reader that has one.
func one(q dag.Querier) dag.Query { return q.Queries()[0] }

func (g *grove) queries(most int) (qs []dag.Query) {
	for range g.upTo(most) {
		t := g.grain()
		q := t.Query()
		switch g.upTo(9) {
		case 0, 1:
			q = t.Query().History()
		case 2:
			q = t.Query().Since(g.grain())
		case 3:
			q = one(dag.All(dag.Failure))
		case 4:
			if g.oneIn(3) {
				q = one(dag.Everything)
			}
		}
		qs = append(qs, q.Optional())
	}
	return qs
}

// taste reads what the queries name, as far as contents go.
func taste(d dag.DAG, qs []dag.Query) (uint32, error) {
	h := fnv.New32a()
	note := func(nodes ...*dag.Node) {
		for _, n := range nodes {
			fmt.Fprintln(h, n.Type(), n.JSON())
		}
	}
	for _, q := range qs {
		t := q.Type()
		switch {
		case t == nil:
			for n := range d.Nodes() {
				note(n)
			}
		case q.After() != nil:
			nodes, err := d.Since(t.Name(), q.After().Name())
			if err != nil {
				return 0, err
			}
			note(nodes...)
		case q.IsNearest():
			n, err := d.Nearest(t.Name())
			if err == nil {
				note(n)
			} else if errors.Is(err, dag.ErrUndeclared) {
				return 0, err
			}
		default:
			nodes, err := d.All(t.Name())
			if err != nil {
				return 0, err
			}
			note(nodes...)
		}
	}
	return h.Sum32(), nil
}

func declared(qs []dag.Query) (out []dag.Querier) {
	for _, q := range qs {
		out = append(out, q)
	}
	return out
}

func (g *grove) leaf() plot {
	name, out, qs := g.name("leaf"), g.grain(), g.queries(2)
	fails, again := g.oneIn(40), g.oneIn(10)
	awaits, plans := g.oneIn(6), g.oneIn(8)
	w := g.weather
	opts := []stone.LeafOption{stone.Queries(declared(qs)...)}
	if again {
		opts = append(opts, stone.Retry{Attempts: 2})
	}
	planOf := func(speck func(string) stone.Ashlar) stone.Ashlar {
		return stone.Seq("plan", stone.Parallel("p", speck("a"), speck("b")), stone.Reduce(speck("c")))
	}
	blind, seeing := planOf(dust), planOf(speck)
	return func(compose) stone.Ashlar {
		return stone.New(name, out, func(ctx context.Context, d dag.DAG) (uint32, error) {
			if err := w.blow(ctx); err != nil {
				return 0, err
			}
			sum, err := taste(d, qs)
			if err != nil {
				return 0, err
			}
			step, err := stone.Step(ctx, "step", nil, func(context.Context, any) (uint32, error) { return sum + 1, nil })
			if err != nil {
				return 0, err
			}
			if awaits && sum%4 != 0 {
				before := d.Len()
				if d, err = stone.In(ctx).Await(d); err != nil {
					return 0, err
				}
				if d.Len() > before {
					w.moved.Add(1)
				}
				for n := range d.Nodes() {
					h := fnv.New32a()
					fmt.Fprintln(h, step, n.Type(), n.JSON())
					step = h.Sum32()
				}
			}
			if plans {
				w.plans.Add(1)
				plan := blind
				if awaits && sum%4 != 0 {
					plan = seeing
				}
				if d, err = dag.Origin(d.Within(nil)); err != nil {
					return 0, err
				}
				lane := stone.In(ctx).RunDynamic(plan, d, nil)
				if lane.Failed() {
					return 0, lane.Cause()
				}
				if _, err := stone.In(ctx).Keep(d, lane); err != nil {
					return 0, err
				}
			}
			if again && !strings.Contains(stone.In(ctx).Path(), "~") {
				return 0, errors.New("try again")
			}
			if fails {
				return 0, stone.Fail("own", "after %d", step)
			}
			return step, nil
		}, opts...)
	}
}

// dust and speck are the leaves of plans: one reads nothing, the other what all
// plans so far have left, which in a Flow is there for those only that await.
func dust(name string) stone.Ashlar {
	return stone.Func0(name, chaff, func(context.Context) (uint32, error) { return uint32(name[0]), nil })
}

func speck(name string) stone.Ashlar {
	return stone.New(name, chaff, func(_ context.Context, d dag.DAG) (uint32, error) {
		all, err := dag.All(chaff).From(d)
		return uint32(len(all)), err
	}, stone.Queries(dag.Maybe(dag.All(chaff))))
}

func (g *grove) steps(depth, most int) []plot {
	out := make([]plot, 1+g.upTo(most-1))
	for i := range out {
		out[i] = g.tree(depth - 1)
	}
	return out
}

func build(plots []plot, c compose) (out []stone.Ashlar) {
	for _, p := range plots {
		out = append(out, p(c))
	}
	return out
}

func (g *grove) composed(depth, most int) plot {
	name, steps := g.name("steps"), g.steps(depth, most)
	return func(c compose) stone.Ashlar { return c(name, build(steps, c)...) }
}

func (g *grove) tree(depth int) plot {
	if depth <= 0 || g.oneIn(3) {
		return g.leaf()
	}
	switch g.upTo(7) {
	default:
		return g.composed(depth, 6)
	case 1:
		name, body, qs := g.name("loop"), g.tree(depth-1), g.queries(1)
		return func(c compose) stone.Ashlar {
			return stone.Loop(name, body(c), stone.Until(dag.ReaderFunc(func(d dag.DAG) (bool, error) {
				sum, err := taste(d, qs)
				return sum%5 != 0, err
			}, declared(qs)...), func(done bool) bool { return done }), 3)
		}
	case 2:
		name, branches, qs := g.name("match"), []plot{g.tree(depth - 1), g.tree(depth - 1)}, g.queries(1)
		return func(c compose) stone.Ashlar {
			on := stone.On(dag.ReaderFunc(func(d dag.DAG) (any, error) {
				sum, err := taste(d, qs)
				return sum % 2, err
			}, declared(qs)...), func(v any) any { return v })
			return stone.Match(name, on, stone.Case(0, branches[0](c)), stone.Case(1, branches[1](c)))
		}
	case 3:
		name, body, heal := g.name("rescue"), g.composed(depth, 3), g.tree(depth-1)
		return func(c compose) stone.Ashlar { return stone.Rescue(name, body(c), heal(c)) }
	case 4:
		name, item, body, last, qs := g.name("map"), g.grain(), g.tree(depth-1), g.leaf(), g.queries(1)
		return func(c compose) stone.Ashlar {
			items := dag.ReaderFunc(func(d dag.DAG) ([]uint32, error) {
				sum, err := taste(d, qs)
				return []uint32{sum, sum + 1, sum}[:1+sum%3], err
			}, declared(qs)...)
			return c(name+"-steps", stone.Map(name, items, item, body(c)), stone.Reduce(last(c)))
		}
	case 5:
		name, child := g.name("scoped"), g.tree(depth-1)
		return func(c compose) stone.Ashlar {
			a := child(c)
			return stone.Scoped(name, stone.Walk{}.InOrder(a), func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
				return stone.In(ctx).RunChild(a, d), nil
			})
		}
	}
}

func left(d dag.DAG) string {
	lines := ids(d)
	if d.Failed() {
		lines = append(lines, fmt.Sprint("! ", d.Latest().ID(), " ", d.Cause()))
	}
	return strings.Join(lines, "\n")
}

// A flow leaves what a sequence leaves, with any number of lanes at once and with any delays.
func TestFlowIsSeq(t *testing.T) {
	var moved, plans, failed, runs int64
	rapid.Check(t, func(t *rapid.T) {
		g := &grove{T: t, weather: &weather{}}
		p := g.composed(3, 8)
		seq := stone.RunUnchecked(context.Background(), p(stone.Seq), stone.Config{})
		want := left(seq)
		g.delays = true
		flow := p(stone.Flow)
		for _, most := range []int{0, 0, 1, 3} {
			g.moved.Store(0)
			got := left(stone.RunCrowded(context.Background(), flow, stone.Config{}, most))
			if got != want {
				t.Fatalf("with %d goroutines a flow leaves something else (-seq +flow):\n%s", most, cmp.Diff(want, got))
			}
			moved += g.moved.Load()
		}
		runs++
		plans += g.plans.Load()
		if seq.Failed() {
			failed++
		}
	})
	t.Logf("%d trees, of which %d failed; %d leaves awaited, %d plans were kept", runs, failed, moved, plans)
	if moved == 0 || plans == 0 || failed == 0 || runs >= 100 && failed > runs*3/4 {
		t.Error("the trees do not exercise the rules")
	}
}

// ended is a recorder that stops a run after so many records.
type ended struct {
	*ledger
	left atomic.Int64
}

var errEnded = errors.New("the process is about to end")

func (e *ended) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	return e.ledger.Do(ctx, key, func(ctx context.Context) (step.Record, error) {
		if e.left.Add(-1) < 0 {
			return step.Record{}, errEnded
		}
		return work(ctx)
	})
}

// A flow that was stopped anywhere resumes to the same result, and does no recorded
// step twice.
func TestFlowResumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &grove{T: t, weather: &weather{}}
		p := g.composed(3, 6)
		want := left(stone.RunUnchecked(context.Background(), p(stone.Seq), stone.Config{}))
		calls := g.calls.Load()
		g.delays = true
		flow := p(stone.Flow)
		l := newLedger(t)
		run := func(r step.Recorder, crash int64) string {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			g.calls.Store(0)
			g.crash, g.stop = crash, cancel
			l.nextRun()
			return left(stone.RunUnchecked(ctx, flow, stone.Config{RunID: "run", Recorder: r}))
		}
		for range rapid.IntRange(1, 3).Draw(t, "stops") {
			if rapid.Bool().Draw(t, "cancelled") {
				run(l, rapid.Int64Range(1, calls+1).Draw(t, "crash"))
			} else {
				e := &ended{ledger: l}
				e.left.Store(rapid.Int64Range(0, 3*calls).Draw(t, "records"))
				run(e, 0)
			}
		}
		if got := run(l, 0); got != want {
			t.Fatalf("the resumed flow has other nodes (-seq +flow):\n%s", cmp.Diff(want, got))
		}
		// Steps after a failure may start again before the failure is replayed.
		if got := run(l, 0); got != want || l.worked > 0 && !strings.Contains(want, `{"kind":`) && !strings.Contains(want, "! ") {
			t.Fatalf("a flow that is replayed worked %d times (-seq +flow):\n%s", l.worked, cmp.Diff(want, got))
		}
		for key, n := range l.recorded {
			if n != 1 {
				t.Errorf("%s %s was done %d times", key.Kind, key.Path, n)
			}
		}
		for _, problem := range l.problems {
			t.Error(problem)
		}
	})
}

// Flow and Seq are one thing to the validator, but for their form.
func TestFlowValidatesAsSeq(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := (&grove{T: t, weather: &weather{}}).composed(3, 6)
		seq, flow := p(stone.Seq), p(stone.Flow)
		if diff := cmp.Diff(stone.Validate(seq, stone.Given{}), stone.Validate(flow, stone.Given{})); diff != "" {
			t.Fatalf("findings (-seq +flow):\n%s", diff)
		}
		if diff := cmp.Diff(seq.Names(), flow.Names()); diff != "" {
			t.Fatalf("names (-seq +flow):\n%s", diff)
		}
		if tree.CountPaths(seq).Cmp(tree.CountPaths(flow)) != 0 || fmt.Sprint(seq.QueriesAll()) != fmt.Sprint(flow.QueriesAll()) || seq.Schema() != flow.Schema() {
			t.Fatal("paths, queries or schema differ")
		}
		if seq.Fingerprint() == flow.Fingerprint() {
			t.Fatal("a flow has the fingerprint of a sequence")
		}
	})
}
