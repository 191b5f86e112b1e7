package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
)

// long is a pipeline of n steps that each read the input. Done counts what is done.
type long struct {
	done    atomic.Int32
	changed int    // the number of the step with another version
	stop    int32  // after so many steps, if not 0
	end     func() // called then
}

var (
	given = dag.NewType[string]("given")
	made  = dag.NewType[string]("made")
)

func (l *long) pipeline(n int) stone.Ashlar {
	steps := make([]stone.Ashlar, n)
	for i := range steps {
		version := "1"
		if i == l.changed {
			version = "2"
		}
		steps[i] = stone.Func(fmt.Sprint("s", i), given, made, func(ctx context.Context, in string) (string, error) {
			if l.done.Add(1) == l.stop {
				l.end()
				return "", ctx.Err()
			}
			return fmt.Sprint(in, " ", i, " ", version), nil
		}, stone.Version(version))
	}
	return stone.Seq("long", steps...)
}

func input(t *testing.T, text string) dag.DAG {
	t.Helper()
	d, err := given.Append(dag.DAG{}, text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// state is everything that a journal says of a run.
func state(t *testing.T, j journal.Journal, run string) string {
	t.Helper()
	info, err := j.Find(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := j.Steps(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	d, err := j.DAG(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"info": info, "steps": steps, "nodes": d.Len()})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFork: a fork of a run of 1,000 steps in which one request changes pays for one, also if it is killed in between, and
// leaves the other run as it was.
func TestFork(t *testing.T) {
	j := memdb.New(t)
	const n = 1000
	l := &long{changed: -1}
	if _, err := stone.Run(t.Context(), l.pipeline(n), stone.Config{RunID: "a", Input: input(t, "x"), Recorder: journal.Keep(j, journal.Options{})}); err != nil {
		t.Fatal(err)
	}
	before := state(t, j, "a")
	fork := &journal.Fork{Run: "a", At: "long/s500"}
	l.done.Store(0)
	l.changed = 500
	anew, perhaps, shared, err := fork.Forecast(t.Context(), j, l.pipeline(n), dag.DAG{})
	if err != nil || len(anew) != 1 || len(perhaps) != 0 || len(shared) != n-1 {
		t.Errorf("forecast: %d anew, %d perhaps, %d shared, %v; want 1, 0, %d", len(anew), len(perhaps), len(shared), err, n-1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l.stop, l.end = 1, cancel // killed in the step itself
	if _, err := stone.Run(ctx, l.pipeline(n), stone.Config{RunID: "b", Recorder: journal.Keep(j, journal.Options{Fork: fork})}); err == nil {
		t.Error("the run was not stopped")
	}
	l.stop = 0
	l.done.Store(0)
	result, err := stone.Run(t.Context(), l.pipeline(n), stone.Config{RunID: "b", Recorder: journal.Keep(j, journal.Options{Resume: true})})
	if got := l.done.Load(); err != nil || got != 1 {
		t.Errorf("the fork did %d steps: %v; want 1", got, err)
	}
	if all, err := dag.All(made).From(result.DAG); err != nil || len(all) != n || all[500] != "x 500 2" {
		t.Errorf("the fork has %d results, %v", len(all), err)
	}
	if diff := cmp.Diff(before, state(t, j, "a")); diff != "" {
		t.Errorf("the other run changed:\n%s", diff)
	}
	differences, err := journal.Diff(t.Context(), j, "a", "b")
	if err != nil || len(differences) != 1 || differences[0].Path != "long/s500" {
		t.Errorf("differences: %v, %v; want one", differences, err)
	}
	// A fork of the fork finds what that took.
	l.done.Store(0)
	l.changed = 500
	if _, err := stone.Run(t.Context(), l.pipeline(n), stone.Config{RunID: "c", Recorder: journal.Keep(j, journal.Options{Fork: &journal.Fork{Run: "b", At: "long/s7"}})}); err != nil || l.done.Load() != 1 {
		t.Errorf("the fork of the fork did %d steps: %v; want 1", l.done.Load(), err)
	}
	// Another input changes all.
	l.done.Store(0)
	if _, err := stone.Run(t.Context(), l.pipeline(n), stone.Config{RunID: "d", Input: input(t, "y"), Recorder: journal.Keep(j, journal.Options{Fork: &journal.Fork{Run: "b", At: "long/s7"}})}); err != nil || l.done.Load() != n {
		t.Errorf("with another input %d steps: %v; want %d", l.done.Load(), err, n)
	}
}

// TestForkSet: a content replaces a result, and only what reads it is done anew.
func TestForkSet(t *testing.T) {
	j := memdb.New(t)
	var calls []string
	plain := dag.NewType[int]("plain")
	p := stone.Seq("p",
		stone.Func("first", given, made, func(_ context.Context, s string) (string, error) { calls = append(calls, "first"); return s + "!", nil }),
		stone.Func("other", given, plain, func(_ context.Context, s string) (int, error) { calls = append(calls, "other"); return len(s), nil }),
		stone.Func("same", plain, dag.NewType[int]("twice"), func(_ context.Context, n int) (int, error) { calls = append(calls, "same"); return 2 * n, nil }),
		stone.Func("last", made, dag.NewType[string]("end"), func(_ context.Context, s string) (string, error) { calls = append(calls, "last"); return s + "?", nil }),
	)
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "a", Input: input(t, "x"), Recorder: journal.Keep(j, journal.Options{})}); err != nil {
		t.Fatal(err)
	}
	calls = nil
	for set, want := range map[string]string{`1`: "want", `"y"`: ""} {
		fork := &journal.Fork{Run: "a", At: "p/first", Set: json.RawMessage(set)}
		result, err := stone.Run(t.Context(), p, stone.Config{RunID: "b" + want, Recorder: journal.Keep(j, journal.Options{Fork: fork})})
		if (err != nil) != (want != "") {
			t.Errorf("set %s: %v", set, err)
		} else if err == nil && result.DAG.Latest().Text() != "y?" {
			t.Errorf("the result is %s, want y?", result.DAG.Latest().Text())
		}
	}
	if diff := cmp.Diff([]string{"last"}, calls); diff != "" {
		t.Errorf("the fork did other steps (-want +got):\n%s", diff)
	}
}

// TestForkWithin: a fork at a step of a body shares the earlier steps of the body by their places, also if the leaf changed.
func TestForkWithin(t *testing.T) {
	j := memdb.New(t)
	var turns []string
	talk := func(version string) stone.Ashlar {
		return stone.Func("talk", given, made, func(ctx context.Context, in string) (string, error) {
			for i := range 4 {
				said, err := stone.Step(ctx, fmt.Sprint("turn-", i), struct{}{}, func(context.Context, struct{}) (string, error) {
					turns = append(turns, fmt.Sprint(version, i))
					return fmt.Sprint(version, i, " "), nil
				})
				if err != nil {
					return "", err
				}
				in += said
			}
			return in, nil
		}, stone.Version(version))
	}
	if _, err := stone.Run(t.Context(), talk("a"), stone.Config{RunID: "a", Input: input(t, ""), Recorder: journal.Keep(j, journal.Options{})}); err != nil {
		t.Fatal(err)
	}
	turns = nil
	result, err := stone.Run(t.Context(), talk("b"), stone.Config{RunID: "b", Recorder: journal.Keep(j, journal.Options{Fork: &journal.Fork{Run: "a", At: "talk/turn-2"}})})
	if err != nil || result.DAG.Latest().Text() != "a0 a1 b2 b3 " {
		t.Errorf("got %q, %v", result.DAG.Latest(), err)
	}
	if diff := cmp.Diff([]string{"b2", "b3"}, turns); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

// TestForkRefused: a running run is not forked, nor one that is gone, nor a step that it lacks.
func TestForkRefused(t *testing.T) {
	j := memdb.New(t)
	l := &long{changed: -1, stop: 1}
	fork := func(run, at string) (err error) {
		_, err = stone.Run(t.Context(), (&long{changed: -1}).pipeline(2), stone.Config{RunID: "b", Recorder: journal.Keep(j, journal.Options{Fork: &journal.Fork{Run: run, At: at}})})
		return err
	}
	l.end = func() {
		if err := fork("a", "long/s0"); !errors.As(err, new(*journal.HeldError)) {
			t.Errorf("of a running run: %v, want a HeldError", err)
		}
	}
	if _, err := stone.Run(t.Context(), l.pipeline(2), stone.Config{RunID: "a", Input: input(t, "x"), Recorder: journal.Keep(j, journal.Options{})}); err != nil {
		t.Fatal(err)
	}
	if err := fork("gone", "long/s0"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("of no run: %v", err)
	}
	if err := fork("a", "long/s9"); !errors.Is(err, journal.ErrNoStep) {
		t.Errorf("at no step: %v", err)
	}
	if _, err := j.Find(t.Context(), "b"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("a refused fork is there: %v", err)
	}
}

// TestForkOfRandom forks random pipelines at a random step with another version: the result equals a run from the start, and only
// the changed step and every step that reads other content run. Killed anywhere, the fork does nothing twice.
func TestForkOfRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "steps")
		reads := make([][]int, n)
		for i := 1; i < n; i++ {
			for k := range i {
				if rapid.IntRange(0, 2).Draw(t, "reads") == 0 {
					reads[i] = append(reads[i], k)
				}
			}
		}
		types := make([]dag.Type[int], n)
		for i := range types {
			types[i] = dag.NewType[int](fmt.Sprint("t", i))
		}
		changed := rapid.IntRange(0, n-1).Draw(t, "changed")
		kill, end := rapid.IntRange(0, n).Draw(t, "kill"), func() {}
		value := func(i int, version string, in []int) int {
			sum := i + len(version)
			for _, v := range in {
				sum += v
			}
			return sum % 5 / 2
		}
		var done []string
		pipeline := func(version string) stone.Ashlar {
			steps := make([]stone.Ashlar, n)
			for i := range steps {
				v := "a"
				if i == changed {
					v = version
				}
				queries := make([]dag.Querier, len(reads[i]))
				for k, from := range reads[i] {
					queries[k] = types[from]
				}
				steps[i] = stone.New(fmt.Sprint("s", i), types[i], func(ctx context.Context, d dag.DAG) (int, error) {
					if len(done) == kill {
						end()
						return 0, ctx.Err()
					}
					var in []int
					for _, from := range reads[i] {
						x, err := types[from].From(d)
						if err != nil {
							return 0, err
						}
						in = append(in, x)
					}
					done = append(done, fmt.Sprint("s", i))
					return value(i, v, in), nil
				}, stone.Queries(queries...), stone.Version(v))
			}
			return stone.Seq("p", steps...)
		}
		j := memdb.New(t)
		keep := func(o journal.Options) stone.RunRecorder { return journal.Keep(j, o) }
		never := kill
		kill = -1
		_, err := stone.Run(context.Background(), pipeline("a"), stone.Config{RunID: "a", Recorder: keep(journal.Options{})})
		if err != nil {
			t.Fatal(err)
		}
		before, after, want := make([]int, n), make([]int, n), []string(nil)
		for i := range n {
			var was, is []int
			for _, k := range reads[i] {
				was, is = append(was, before[k]), append(is, after[k])
			}
			before[i], after[i] = value(i, "a", was), value(i, "a", is)
			if i == changed {
				after[i] = value(i, "abc", is)
			}
			if i == changed || !slices.Equal(was, is) {
				want = append(want, fmt.Sprint("s", i))
			}
		}
		other := pipeline("abc")
		done, kill = nil, never
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		end = cancel
		fork := &journal.Fork{Run: "a", At: fmt.Sprint("p/s", changed)}
		result, err := stone.Run(ctx, other, stone.Config{RunID: "b", Recorder: keep(journal.Options{Fork: fork})})
		if kill = -1; err != nil {
			result, err = stone.Run(context.Background(), other, stone.Config{RunID: "b", Recorder: keep(journal.Options{Resume: true})})
		}
		if err != nil {
			t.Fatal(err)
		}
		anew, perhaps, _, err := fork.Forecast(context.Background(), j, other, dag.DAG{})
		for _, name := range done {
			if err != nil || !slices.ContainsFunc(append(anew, perhaps...), func(s journal.Step) bool { return s.Name == name }) {
				t.Errorf("the forecast left out %s: %v", name, err)
			}
		}
		if diff := cmp.Diff(want, done); diff != "" {
			t.Errorf("steps of the fork (-want +got):\n%s", diff)
		}
		for i := range n {
			if got, err := types[i].From(result.DAG); err != nil || got != after[i] {
				t.Errorf("step %d made %d, %v; want %d", i, got, err, after[i])
			}
		}
	})
}

// TestForkOfFailed: the failure that ended a run is not reused, and one that a rescue has caught is.
func TestForkOfFailed(t *testing.T) {
	j := memdb.New(t)
	var calls []string
	fails := true
	do := func(name string, fail bool) stone.Ashlar {
		return stone.Func(name, given, made, func(context.Context, string) (string, error) {
			calls = append(calls, name)
			if fail && fails {
				return "", errors.New("no luck")
			}
			return name, nil
		})
	}
	p := stone.Seq("p", stone.Rescue("r", do("caught", true), do("instead", false)), do("first", false), do("broken", true))
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "a", Input: input(t, "x"), Recorder: journal.Keep(j, journal.Options{})}); err == nil {
		t.Fatal("the run did not fail")
	}
	before := state(t, j, "a")
	calls, fails = nil, false
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "b", Recorder: journal.Keep(j, journal.Options{Fork: &journal.Fork{Run: "a", At: "p/first"}})}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"first", "broken"}, calls); diff != "" {
		t.Errorf("steps of the fork (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, state(t, j, "a")); diff != "" {
		t.Errorf("the other run changed:\n%s", diff)
	}
}
