package stone_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/trace"
)

// events is a handler that keeps what it gets, from a level on.
type events struct {
	level slog.Level
	mu    sync.Mutex
	all   []record
}

type record struct {
	level slog.Level
	name  string
	time  time.Time
	attrs map[string]string
}

func (e *events) Enabled(_ context.Context, level slog.Level) bool { return level >= e.level }
func (e *events) WithAttrs([]slog.Attr) slog.Handler               { panic("not used") }
func (e *events) WithGroup(string) slog.Handler                    { panic("not used") }
func (e *events) Handle(_ context.Context, r slog.Record) error {
	ev := record{r.Level, r.Message, r.Time, map[string]string{}}
	r.Attrs(func(a slog.Attr) bool {
		ev.attrs[a.Key] = a.Value.String()
		return true
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev)
	return nil
}

// lines shows events as "level name attrs", without what differs from run to run.
func (e *events) lines(keys ...string) []string {
	var out []string
	for _, ev := range e.all {
		line := ev.level.String() + " " + ev.name
		for _, k := range keys {
			if v, ok := ev.attrs[k]; ok {
				line += " " + k + "=" + v
			}
		}
		out = append(out, line)
	}
	return out
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stone.Seq("s",
			stone.Parallel("p", boom("a"), stone.Func0("b", word, func(ctx context.Context) (string, error) {
				time.Sleep(1500 * time.Millisecond)
				stone.In(ctx).Event(slog.LevelInfo, "own", slog.Int("n", 1))
				return "y", nil
			}), stone.Lanes(1)),
			last,
			stone.Ask("ask", dag.Nothing, reply, text("Well?"), stone.Choices("yes")),
			stone.Func0("again", word, func(ctx context.Context) (string, error) {
				if !strings.Contains(stone.In(ctx).Path(), "~") {
					return "", errBoom
				}
				return "z", nil
			}, stone.Retry{Attempts: 2}))
		h := &events{level: slog.LevelDebug}
		if _, err := stone.Run(t.Context(), p, stone.Config{Watch: event.Log(h), Frontend: canned("no", "yes")}); err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSpace(`
INFO run-start ashlar-name=s path=s
DEBUG ashlar-start ashlar-name=s path=s form=seq
DEBUG ashlar-start ashlar-name=p path=s/p form=parallel
DEBUG lane-start ashlar-name=p path=s/p[0] lane=0
DEBUG ashlar-start ashlar-name=a path=s/p[0]/a form=leaf
ERROR failure ashlar-name=a path=s/p[0]/a kind=error reason=boom
DEBUG ashlar-end ashlar-name=a path=s/p[0]/a form=leaf ok=false elapsed=0s
DEBUG lane-end ashlar-name=p path=s/p[0] lane=0 ok=false elapsed=0s
DEBUG lane-start ashlar-name=p path=s/p[1] lane=1
DEBUG ashlar-start ashlar-name=b path=s/p[1]/b form=leaf
INFO own n=1
DEBUG ashlar-end ashlar-name=b path=s/p[1]/b form=leaf ok=true elapsed=1.5s
DEBUG lane-end ashlar-name=p path=s/p[1] lane=1 ok=true elapsed=1.5s
DEBUG ashlar-end ashlar-name=p path=s/p form=parallel ok=true elapsed=1.5s
DEBUG ashlar-start ashlar-name=last path=s/last form=leaf
DEBUG ashlar-end ashlar-name=last path=s/last form=leaf ok=true elapsed=0s
DEBUG ashlar-start ashlar-name=ask path=s/ask form=leaf
INFO question-asked ashlar-name=ask path=s/ask reason= question=Well?
INFO question-asked ashlar-name=ask path=s/ask reason="no" is not an answer: want one of: yes question=Well?
INFO question-answered ashlar-name=ask path=s/ask answer=yes
DEBUG ashlar-end ashlar-name=ask path=s/ask form=leaf ok=true elapsed=0s
DEBUG ashlar-start ashlar-name=again path=s/again form=leaf
WARN attempt-failed ashlar-name=again path=s/again kind=error reason=boom attempt=1
DEBUG ashlar-end ashlar-name=again path=s/again form=leaf ok=true elapsed=0s
DEBUG ashlar-end ashlar-name=s path=s form=seq ok=true elapsed=1.5s
INFO run-end ashlar-name=s path=s ok=true elapsed=1.5s
`), "\n")
		got := h.lines("ashlar-name", "path", "form", "lane", "kind", "reason", "question", "answer", "attempt", "n", "ok", "elapsed")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		for _, ev := range h.all {
			if ev.time.IsZero() {
				t.Errorf("%s has no time", ev.name)
			}
		}
	})
}

// Spans form the tree: every event belongs to one run, every parent is a span
// whose start came before, and the paths of spans nest.
func TestSpans(t *testing.T) {
	h := &events{level: slog.LevelDebug}
	inner := stone.Seq("inner", numbers(3), stone.Map("m", list, number, stone.Loop("l", stone.Func0("leaf", word, func(ctx context.Context) (string, error) {
		_, err := stone.Step(ctx, "step", nil, func(ctx context.Context, _ any) (int, error) {
			stone.In(ctx).Event(slog.LevelInfo, "in-step")
			return 0, nil
		})
		return "x", err
	}), stone.Until(word, func(string) bool { return true }), 2)), last)
	p := stone.Seq("s", numbers(3), stone.Map("m", list, number, inner), last)
	if _, err := stone.Run(t.Context(), p, stone.Config{Watch: event.Log(h), RunID: "r1", Recorder: memdb.New(t)}); err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{"": ""} // of spans
	for _, ev := range h.all {
		span, parent := ev.attrs["span-id"], ev.attrs["parent-span-id"]
		up, known := paths[parent]
		if ev.attrs["trace-id"] != "r1" || span == "" || !known || (parent == "") != (ev.attrs["ashlar-name"] == "s") && ev.name != "in-step" {
			t.Errorf("%+v: want trace r1, a span, and a parent that has started", ev)
		}
		path := ev.attrs["path"]
		if strings.HasSuffix(ev.name, "-start") {
			if before, ok := paths[span]; ok && ev.name != "run-start" && before != path {
				t.Errorf("%s at %s begins the span of %s again", ev.name, path, before)
			}
			paths[span] = path
		}
		if path != "" && !strings.HasPrefix(path, up) {
			t.Errorf("%s at %s has its parent at %s", ev.name, path, up)
		}
		if _, ok := paths[span]; !ok {
			t.Errorf("%s is in a span that has not started", ev.name)
		}
	}
	// Without the root: numbers, the map and 3 lanes; in each of them the
	// sequence, numbers, a map, 3 lanes of a loop with a leaf, and a reducer,
	// which is its body; then the last reducer.
	if want := 1 + 5 + 3*(3+3*3+1) + 1; len(paths)-1 != want {
		t.Errorf("%d spans, want %d", len(paths)-1, want)
	}
}

func TestReplayEvents(t *testing.T) {
	memory := memdb.New(t)
	p := stone.Seq("s", say("a", "x"), stone.Loop("l", boom("b"), stone.Until(word, func(string) bool { return true }), 2))
	for i, want := range [][]string{
		{"INFO run-start", "ERROR failure kind=error reason=boom", "INFO run-end"},
		{"INFO run-start", "INFO step-replayed path=s/a step=leaf", "INFO step-replayed path=s/l[0]/b step=leaf", "ERROR failure kind=error reason=boom", "INFO run-end"},
	} {
		h := &events{level: slog.LevelInfo}
		if _, err := stone.Run(t.Context(), p, stone.Config{Watch: event.Log(h), RunID: "r", Recorder: memory}); err == nil {
			t.Fatal("the run did not fail")
		}
		for i, ev := range h.all {
			if ev.name != "step-replayed" {
				delete(h.all[i].attrs, "path")
			}
		}
		if diff := cmp.Diff(want, h.lines("path", "step", "kind", "reason")); diff != "" {
			t.Errorf("run %d (-want +got):\n%s", i, diff)
		}
	}
}

// What the run sends is what package trace reads.
func TestEventsInTraceFiles(t *testing.T) {
	var file bytes.Buffer
	p := stone.Seq("s", stone.Parallel("p", boom("a"), say("b", "x")), last, stone.Ask("ask", dag.Nothing, reply, text("Well?")))
	if _, err := stone.Run(t.Context(), p, stone.Config{Watch: event.NewWriter(&file, slog.LevelDebug), Frontend: canned("fine")}); err != nil {
		t.Fatal(err)
	}
	var all, story int
	var lines strings.Builder
	for _, err := range event.Read(bytes.NewReader(file.Bytes())) {
		if err != nil {
			t.Fatal(err)
		}
		all++
	}
	for e, err := range trace.Lifecycle(event.Read(&file)) {
		if err != nil {
			t.Fatal(err)
		}
		story++
		lines.WriteString(trace.FormatLifecycleLine(e) + "\n")
	}
	if all != story {
		t.Errorf("%d of %d events are lifecycle events, want all of these", story, all)
	}
	for _, want := range []string{"lane=0", "kind=error reason=boom", "question=Well?", "answer=fine", "ms=", "run-end", "lane-end"} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("the lifecycle lacks %s:\n%s", want, lines.String())
		}
	}
}

func TestNothingGoesToTheDefaultLogger(t *testing.T) {
	h := &events{level: slog.LevelDebug}
	before := slog.Default()
	slog.SetDefault(slog.New(h))
	defer slog.SetDefault(before)
	_, _ = stone.Run(t.Context(), stone.Seq("s", say("a", "x"), boom("b")), stone.Config{})
	_, _ = stone.Run(t.Context(), stone.Seq("s", say("a", "x"), boom("b")), stone.Config{Watch: event.Log(slog.DiscardHandler)})
	stone.In(t.Context()).Event(slog.LevelError, "outside")
	if len(h.all) > 0 {
		t.Errorf("the default logger got %q", h.lines())
	}
}

// Events without a watcher cost nothing.
func TestDisabledEventsAllocateNothing(t *testing.T) {
	for name, log := range map[string]slog.Handler{"no handler": nil, "a handler that declines": &events{level: slog.LevelError}} {
		_, err := stone.Run(t.Context(), stone.New("a", word, func(ctx context.Context, _ dag.DAG) (string, error) {
			deep := context.WithValue(ctx, contextKey{}, "v")
			if n := testing.AllocsPerRun(100, func() {
				stone.In(ctx).Event(slog.LevelInfo, "own", slog.String("k", "v"), slog.Int("n", 7))
				stone.In(deep).Event(slog.LevelInfo, "own", slog.Duration("d", time.Second))
				if stone.In(ctx).Enabled(slog.LevelWarn) || stone.In(deep).Enabled(slog.LevelDebug) {
					t.Error("Enabled")
				}
			}); n != 0 {
				t.Errorf("%s: %v allocations for events without a watcher, want 0", name, n)
			}
			return "x", nil
		}), stone.Config{Watch: event.Log(log)})
		if err != nil {
			t.Fatal(err)
		}
	}
	if stone.In(t.Context()).Enabled(slog.LevelError) || stone.In(t.Context()).RunID()+stone.In(t.Context()).Path() != "" {
		t.Error("outside a run there is something to see")
	}
}

// A run hangs below a span of the program around it, and every event has the id of
// the request that the run answers.
func TestOutside(t *testing.T) {
	h := &events{level: slog.LevelDebug}
	cfg := stone.Config{Watch: event.Log(h), Request: "r-4a2b", Parent: "outer-7"}
	if _, err := stone.Run(t.Context(), stone.Seq("s", numbers(3), last), cfg); err != nil {
		t.Fatal(err)
	}
	roots := 0
	for _, ev := range h.all {
		if ev.attrs["request-id"] != "r-4a2b" {
			t.Errorf("%+v: want the id of the request", ev)
		}
		if root := ev.attrs["ashlar-name"] == "s"; root != (ev.attrs["parent-span-id"] == "outer-7") {
			t.Errorf("%+v: want the span outside around the root alone", ev)
		} else if root {
			roots++
		}
	}
	if roots < 4 {
		t.Errorf("%d events of the root in %+v", roots, h.all)
	}
}

// A lane is named by its branch, or by what names its item.
func TestLaneLabels(t *testing.T) {
	thing := dag.NewType[any]("thing")
	items := []any{"a text", 7, map[string]any{"id": "x", "name": ""}, map[string]any{"files": 3}, strings.Repeat("é", 100), strings.Repeat("long", 2000), true}
	var got []string
	watch := event.Func(slog.LevelDebug, func(e event.Event) {
		if d, ok := e.Data.(event.LaneStarted); ok {
			got = append(got, d.Label)
		}
	})
	nothing := stone.Func("nothing", thing, word, func(context.Context, any) (string, error) { return "", nil })
	join := stone.Reduce(stone.Func("join", dag.History(word), word, func(context.Context, []string) (string, error) { return "", nil }))
	p := stone.Seq("p",
		stone.Map("each", dag.ReaderFunc(func(dag.DAG) ([]any, error) { return items, nil }), thing, nothing, stone.Lanes(1)), join,
		stone.Parallel("both", say("left", ""), say("right", ""), stone.Lanes(1)), join)
	if _, err := stone.Run(t.Context(), p, stone.Config{Watch: watch}); err != nil {
		t.Fatal(err)
	}
	want := []string{"a text", "7", "x", "", strings.Repeat("é", 40) + "…", "", "", "left", "right"}
	if !slices.Equal(got, want) {
		t.Errorf("labels %q, want %q", got, want)
	}
}
