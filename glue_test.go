package stone_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
)

// glued is a pipeline in which a guard, a batch and the body of a loop are glue, and so is
// a leaf that counts how often it is called.
func glued(called *int) stone.Ashlar {
	word := dag.NewType[string]("word")
	say := func(name string) stone.Ashlar {
		return stone.Func0(name, word, func(context.Context) (string, error) { return name, nil })
	}
	quiet := stone.Func0("quiet", word, func(context.Context) (string, error) { *called++; return "quiet", nil }).Glue()
	holds := stone.On(word, func(w string) bool { return w == "quiet" })
	return stone.Seq("all",
		say("start"), quiet,
		stone.Match("x?", holds, stone.Case(true, say("x")), stone.Case(false, say("pass").Glue())).Glue(),
		stone.Match("y?", holds, stone.Case(true, say("y")), stone.Case(false, say("skip").Glue())).Glue(),
		stone.Flow("batch", say("one"), stone.Seq("two", say("three"))).Glue(),
		stone.Loop("loop", stone.Seq("body", say("z")).Glue(), stone.Until(word, func(w string) bool { return w == "z" }), 2),
	)
}

// Glue is in no address, event or record, and is done again where a run is resumed.
func TestGlue(t *testing.T) {
	called := 0
	p := glued(&called)
	var mu sync.Mutex // steps run at the same time
	var events []string
	cfg := stone.Config{RunID: "r", Recorder: journal.Keep(memdb.New(t), journal.Options{}), Watch: event.Func(slog.LevelDebug, func(e event.Event) {
		if _, ok := e.Data.(event.StepStarted); ok {
			mu.Lock()
			events = append(events, e.Path)
			mu.Unlock()
		}
	})}
	if _, err := stone.Run(t.Context(), p, cfg); err != nil {
		t.Fatal(err)
	}
	want := []string{"all", "all/start", "all/x", "all/one", "all/two", "all/two/three", "all/loop", "all/loop[0]/z"}
	slices.Sort(events)
	slices.Sort(want)
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestGlueIsResumed(t *testing.T) {
	called := 0
	p, db := glued(&called), memdb.New(t)
	for i := range 2 {
		res, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})})
		if err != nil {
			t.Fatal(err)
		}
		if word := res.Node.Text(); word != "z" {
			t.Errorf("run %d ends with %q", i, word)
		}
	}
	steps, err := db.Steps(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, s := range steps {
		if s.Kind == "leaf" {
			paths = append(paths, s.Path)
		}
	}
	slices.Sort(paths)
	if got := strings.Join(paths, " "); got != "all/loop[0]/z all/one all/start all/two/three all/x" {
		t.Errorf("recorded %s", got)
	}
}

func TestGlueMistakes(t *testing.T) {
	word := dag.NewType[string]("word")
	say := func(name string) stone.Ashlar {
		return stone.Func0(name, word, func(context.Context) (string, error) { return name, nil })
	}
	x := say("x")
	for _, test := range []struct {
		name, want string
		p          stone.Ashlar
	}{
		{"beside", `two steps under it have the name "x", one of them in glue: rename one`, stone.Seq("all", stone.Seq("g", x).Glue(), x)},
		{"twice", `two steps under it have the name "x", one of them in glue: rename one`, stone.Seq("all", stone.Seq("g", x).Glue(), stone.Seq("h", x).Glue())},
		{"lanes", "", stone.Seq("all", stone.Parallel("lanes", stone.Seq("g", x).Glue(), stone.Seq("h", x).Glue()), stone.Reduce(say("last")))},
		{"loop", "a loop cannot be glue: addresses need its name", stone.Seq("all", stone.Loop("l", x, stone.Until(word, func(string) bool { return true }), 1).Glue())},
	} {
		err := stone.Validate(test.p, stone.Config{}.Given()).Err()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}
