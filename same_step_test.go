package stone_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// counting makes a Reusable leaf that reads word and returns how often it ran.
func counting(name string, runs *int, opts ...stone.LeafOption) stone.Ashlar {
	var mu sync.Mutex
	return stone.New(name, number, func(_ context.Context, d dag.DAG) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		*runs++
		return *runs, nil
	}, append([]stone.LeafOption{stone.Queries(word), stone.Reusable()}, opts...)...)
}

// Samples of one question stay samples: in their own run, and when another run
// reuses them.
func TestReuseKeepsSamplesApart(t *testing.T) {
	var runs int
	sample := counting("sample", &runs)
	five := func() []stone.Ashlar { return slices.Repeat([]stone.Ashlar{sample}, 5) }
	items := dag.ReaderFunc(func(dag.DAG) ([][]int, error) { return [][]int{{1}, {2}, {1}, {3}, {1}}, nil })
	for name, votes := range map[string]stone.Ashlar{
		"lanes":  stone.Seq("all", stone.Parallel("vote", stone.Parts(five())...), stone.Reduce(say("end", "x"))),
		"items":  stone.Seq("all", stone.Map("vote", items, list, sample), stone.Reduce(say("end", "x"))),
		"steps":  stone.Seq("vote", five()...),
		"rounds": stone.Loop("vote", sample, stone.Until(number, func(n int) bool { return n%5 == 0 }), 5),
		"visits": stone.Scoped("vote", stone.Walk{}.InOrder(sample), func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
			for range 5 {
				d = stone.In(ctx).RunChild(sample, d)
			}
			return d, nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			runs = 0
			memory := memdb.New(t)
			for _, id := range []string{"one", "two"} {
				result, err := stone.Run(t.Context(), stone.Seq("s", say("ask", "x"), votes), stone.Config{RunID: id, Recorder: memory})
				if err != nil {
					t.Fatal(err)
				}
				got, err := dag.All(number).From(result.DAG)
				if slices.Sort(got); err != nil || !slices.Equal(got, []int{1, 2, 3, 4, 5}) || runs != 5 {
					t.Errorf("run %s: votes %v after %d runs, want five different ones after 5", id, got, runs)
				}
			}
		})
	}
}

// A new first item does not change the results of the others.
func TestReuseKnowsLanesByTheirItem(t *testing.T) {
	memory := memdb.New(t)
	var mu sync.Mutex
	var worked []string
	work := stone.Func("work", list, number, func(_ context.Context, l []int) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		worked = append(worked, fmt.Sprint(l))
		return l[0], nil
	}, stone.Reusable())
	for i, tt := range []struct {
		items [][]int
		want  string
	}{{[][]int{{1}, {2}, {2}}, "[1] [2] [2]"}, {[][]int{{0}, {1}, {2}, {2}}, "[0]"}, {[][]int{{2}, {2}, {2}}, "[2]"}} {
		worked = nil
		p := stone.Seq("s", stone.Map("m", dag.ReaderFunc(func(dag.DAG) ([][]int, error) { return tt.items, nil }), list, work), stone.Reduce(say("end", "x")))
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: fmt.Sprint(i), Recorder: memory}); err != nil {
			t.Fatal(err)
		}
		if slices.Sort(worked); strings.Join(worked, " ") != tt.want {
			t.Errorf("run %d worked on %v, want %v", i, worked, tt.want)
		}
	}
}

// A leaf depends on what its judges read as on what it reads itself: no other run takes its result,
// and the same run refuses it.
func TestKeyCoversChildren(t *testing.T) {
	for _, id := range []string{"two", "one"} {
		memory := memdb.New(t)
		judge := stone.New("judge", word, func(_ context.Context, d dag.DAG) (string, error) {
			rules, err := dag.All(list).From(d)
			return fmt.Sprint(rules), err
		}, stone.Queries(dag.All(list)))
		leaf := stone.New("leaf", word, func(ctx context.Context, d dag.DAG) (string, error) {
			out := stone.In(ctx).RunChild(judge, d)
			return out.Within(nil).Latest().Text(), out.Cause()
		}, stone.Reusable(), stone.Children(stone.Walk{}.InOrder(judge)))
		run := func(id string, rule int) string {
			rules := stone.Func0("rules", list, func(context.Context) ([]int, error) { return []int{rule}, nil }, stone.Version(fmt.Sprint(rule)))
			result, err := stone.Run(t.Context(), stone.Seq("s", rules, leaf), stone.Config{RunID: id, Recorder: memory})
			if errors.Is(err, kind.Replay) {
				return "refused"
			}
			if err != nil {
				t.Fatal(err)
			}
			return result.Node.Text()
		}
		want := map[string]string{"two": "[[2]]", "one": "refused"}[id]
		if a, b := run("one", 1), run(id, 2); a != "[[1]]" || b != want {
			t.Errorf("run one gave %s, and run %s with another rule %s", a, id, b)
		}
	}
}

// No key covers the reads of RunDynamic and Await, so no other run reuses the result.
func TestUnshared(t *testing.T) {
	for name, body := range map[string]func(context.Context, dag.DAG) error{
		"dynamic": func(ctx context.Context, d dag.DAG) error {
			return stone.In(ctx).RunDynamic(say("plan", "x"), d, nil).Cause()
		},
		"await":   func(ctx context.Context, d dag.DAG) error { _, err := stone.In(ctx).Await(d); return err },
		"a child": func(ctx context.Context, d dag.DAG) error { return stone.In(ctx).RunChild(planner, d).Cause() },
		"a step": func(ctx context.Context, d dag.DAG) error {
			_, err := stone.Step(ctx, "s", nil, func(ctx context.Context, _ any) (int, error) {
				return 0, stone.In(ctx).RunDynamic(say("plan", "x"), d, nil).Cause()
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			memory := memdb.New(t)
			runs, crash := 0, true
			leaf := stone.New("leaf", word, func(ctx context.Context, d dag.DAG) (string, error) {
				runs++
				if err := body(ctx, d); err != nil || crash {
					return "", errors.Join(err, kind.Waiting)
				}
				return "x", nil
			}, stone.Reusable(), stone.Children(stone.Walk{}.InOrder(planner)))
			for i, id := range []string{"one", "one", "two"} {
				crash = i == 0
				_, err := stone.Run(t.Context(), leaf, stone.Config{RunID: id, Recorder: memory})
				if (err != nil) != crash {
					t.Fatal(err)
				}
			}
			if runs != 3 {
				t.Errorf("the body ran %d times, want 3: stopped, resumed, and again in another run", runs)
			}
		})
	}
}

var planner = stone.New("planner", word, func(ctx context.Context, d dag.DAG) (string, error) {
	return "x", stone.In(ctx).RunDynamic(say("plan", "x"), d, nil).Cause()
})

type settled struct{ print, say string }

func (s settled) Fingerprint() []byte { return []byte(s.print) }

func (s settled) Render(d dag.DAG) ([]byte, error) {
	w, err := word.From(d)
	return []byte(s.say + w), err
}

// The fingerprint covers the description of a detail, and the key of reuse its rendered text, which
// does not matter within a run.
func TestKeyCoversDetail(t *testing.T) {
	memory := memdb.New(t)
	runs := 0
	for i, tt := range []struct {
		id      string
		detail  settled
		want    int
		refused bool
	}{{"a", settled{"1", "x"}, 1, false}, {"b", settled{"1", "x"}, 1, false}, {"c", settled{"2", "x"}, 2, false}, {"a", settled{"2", "x"}, 2, true},
		{"a", settled{"1", "y"}, 2, false}, {"d", settled{"1", "y"}, 3, false}} {
		p := stone.Seq("s", say("ask", "w"), counting("leaf", &runs, stone.Detail{Fingerprint: tt.detail.Fingerprint, Render: tt.detail.Render}))
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: tt.id, Recorder: memory}); errors.Is(err, kind.Replay) != tt.refused || err != nil && !tt.refused || runs != tt.want {
			t.Errorf("run %d: %d runs so far, %v; want %d", i, runs, err, tt.want)
		}
	}
}

// An answer that is recorded stands, whatever the question now is; other choices are another pipeline.
func TestKeyCoversQuestion(t *testing.T) {
	memory := memdb.New(t)
	asks := func(text string, choices ...string) (asked bool) {
		p := stone.Ask("q", dag.Nothing, reply, func(struct{}) string { return text }, stone.Choices(choices...))
		asker := frontend(func(context.Context, ask.Question) (string, error) { asked = true; return "yes", nil })
		_, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: memory, Frontend: asker})
		if errors.Is(err, kind.Replay) != (len(choices) > 1) || err != nil && len(choices) == 1 {
			t.Fatal(err)
		}
		return asked
	}
	if !asks("deploy?", "yes") || asks("deploy?", "yes") || asks("delete?", "yes") || asks("deploy?", "yes", "no") {
		t.Error("want the question asked once")
	}
}

// fetches runs a body that fetches the inputs, each on a goroutine of its own if they take turns.
func fetches(t *testing.T, memory *sqlite.DB, turns bool, inputs ...string) (got []string, worked int, result stone.Result, err error) {
	p := stone.New("leaf", word, func(ctx context.Context, _ dag.DAG) (string, error) {
		for _, in := range inputs {
			var v string
			var err error
			fetch := func() {
				v, err = stone.Step(ctx, "fetch", in, func(_ context.Context, in string) (string, error) {
					worked++
					return fmt.Sprint(in, worked), nil
				})
			}
			if turns {
				var wait sync.WaitGroup
				wait.Go(fetch)
				wait.Wait()
			} else {
				fetch()
			}
			if err != nil {
				return "", err
			}
			got = append(got, v)
		}
		if len(inputs) == 1 {
			return "x", nil
		}
		return "", kind.Waiting
	})
	result, err = stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(memory, journal.Options{})})
	return got, worked, result, err
}

// Goroutines that take turns get their own results in a resumed run. What it leaves unused is named.
func TestStepsThatTakeTurns(t *testing.T) {
	memory := memdb.New(t)
	fetches(t, memory, true, "a", "b", "a")
	got, worked, _, _ := fetches(t, memory, true, "b", "a", "c", "a")
	if diff := cmp.Diff([]string{"b2", "a1", "c1", "a3"}, got); diff != "" || worked != 1 {
		t.Errorf("resumed in another order, %d steps worked (-want +got):\n%s", worked, diff)
	}
	_, _, result, err := fetches(t, memory, true, "b")
	if err != nil || len(result.Notices) != 1 || result.Notices[0].Code != terms.UnusedRecords || !strings.Contains(result.Notices[0].Text, "leaf/fetch, leaf/fetch@3:") {
		t.Errorf("resumed with fewer steps: %v, notices %+v, want the unused ones", err, result.Notices)
	}
	info, err := memory.Find(t.Context(), "r")
	if err != nil || len(info.Notices) != 1 {
		t.Errorf("the journal has the notices %+v, %v", info.Notices, err)
	}
}

// A body that makes one step after the other is refused at the first one that differs, before that
// does anything.
func TestStepsInOrder(t *testing.T) {
	for _, inputs := range [][]string{{"b", "a", "a"}, {"a", "c", "a"}, {"a", "a", "b"}} {
		memory := memdb.New(t)
		fetches(t, memory, false, "a", "b", "a")
		_, worked, _, err := fetches(t, memory, false, inputs...)
		f := wantKind(t, err, kind.Replay)
		if worked != 0 || !strings.HasPrefix(f.Path, "leaf/fetch") {
			t.Errorf("resumed with %v: %v after %d steps, want the refusal before any", inputs, err, worked)
		}
	}
}

// A step whose input cannot be written down fails in every run.
func TestStepInput(t *testing.T) {
	for _, recorder := range []step.Recorder{nil, memdb.New(t)} {
		_, err := stone.Run(t.Context(), stone.Func0("a", word, func(ctx context.Context) (string, error) {
			return stone.Step(ctx, "s", func() {}, func(context.Context, func()) (string, error) { return "x", nil })
		}), stone.Config{Recorder: recorder})
		if f := wantKind(t, err, kind.BadContent); !strings.Contains(f.Reason, `input of step "s"`) {
			t.Error(f)
		}
	}
}

// Whatever of a pipeline can be seen from outside is in its fingerprint.
func TestFingerprint(t *testing.T) {
	until := func(max int) stone.Ashlar {
		return stone.Loop("l", say("a", "x"), stone.Until(word, func(string) bool { return true }), max)
	}
	on := stone.On(word, func(w string) string { return w })
	different := []stone.Ashlar{
		say("a", "x"), say("b", "x"), say("a", "x", stone.Version("2")), say("a", "x", stone.Queries(number)),
		say("a", "x", stone.Queries(dag.All(number))), say("a", "x", stone.Queries(dag.Maybe(number))),
		say("a", "x", stone.Queries(dag.Since(number, word))), numbers(1),
		stone.Seq("a", say("a", "x")), stone.Seq("a", say("a", "x"), say("a", "x")), stone.Reduce(say("a", "x")),
		stone.Seq("a", stone.Seq("a", say("a", "x"))), stone.Seq("a", say("b", "x")),
		until(1), until(2),
		stone.Match("m", on, stone.Case("x", say("a", "x"))), stone.Match("m", on, stone.Case("y", say("a", "x"))),
		stone.Match("m", on, stone.Case("x", say("a", "x")), stone.Case("y", say("a", "x"))),
		stone.Match("m", stone.Lens("a"), stone.Case("x", say("a", "x"))), stone.Match("m", stone.Lens("b"), stone.Case("x", say("a", "x"))),
		stone.Map("m", list, number, say("a", "x")), stone.Map("m", list, number, say("a", "x"), stone.Lanes(2)),
		stone.Map("m", list, number, say("a", "x"), stone.Quorum(2)), stone.Map("m", list, number, say("a", "x"), stone.AllLanes()),
		stone.Ask("a", dag.Nothing, reply, text("")), stone.Ask("a", dag.Nothing, reply, text(""), stone.Choices("x")),
		{}, stone.Func0[chan int]("a", dag.NewType[chan int]("c"), nil), stone.Leaf("a", nil, nil),
	}
	seen := map[dag.ID]int{}
	for i, a := range different {
		print := a.Fingerprint()
		if j, ok := seen[print]; ok {
			t.Errorf("pipelines %d and %d have one fingerprint", i, j)
		}
		if seen[print] = i; print != a.Fingerprint() {
			t.Errorf("pipeline %d has two fingerprints", i)
		}
	}
	if say("a", "x").Fingerprint() != say("a", "y").Fingerprint() {
		t.Error("two leaves that differ inside only have different fingerprints")
	}
}
