package stone_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	word   = dag.NewType[string]("word")
	number = dag.NewType[int]("number")
	list   = dag.NewType[[]int]("list")
)

// say makes a leaf that writes a word.
func say(name, text string, opts ...stone.LeafOption) stone.Ashlar {
	return stone.Func0(name, word, func(context.Context) (string, error) { return text, nil }, opts...)
}

var errBoom = errors.New("boom")

// boom makes a leaf that fails.
func boom(name string, opts ...stone.LeafOption) stone.Ashlar {
	return stone.Func0(name, word, func(context.Context) (string, error) { return "", errBoom }, opts...)
}

// count makes a leaf that writes how many numbers there are.
func count(name string) stone.Ashlar {
	return stone.New(name, number, func(_ context.Context, d dag.DAG) (int, error) {
		all, err := dag.All(number).From(d)
		return len(all), err
	}, stone.Queries(dag.Maybe(dag.History(number))))
}

// numbers makes a leaf that writes the list 0, 1, … n-1.
func numbers(n int) stone.Ashlar {
	return stone.Func0("numbers", list, func(context.Context) ([]int, error) {
		l := make([]int, n)
		for i := range l {
			l[i] = i
		}
		return l, nil
	})
}

// last makes a reducer.
var last = stone.Reduce(stone.New("last", word, func(_ context.Context, d dag.DAG) (string, error) {
	all, err := dag.History(word).From(d)
	return fmt.Sprint(len(all)), err
}, stone.Queries(dag.Maybe(dag.History(word)))))

// show lists the nodes of a DAG as "type content", and what is in flight after a "!".
func show(d dag.DAG) []string {
	var lines []string
	for n := range d.Nodes() {
		lines = append(lines, n.Type()+" "+n.JSON())
	}
	if d.InFlight() {
		lines = append(lines, "! "+d.Latest().JSON())
	}
	return lines
}

func wantShow(t *testing.T, d dag.DAG, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, show(d)); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

// wantKind checks the error of a run.
func wantKind(t *testing.T, err error, want kind.Kind) *stone.Failure {
	t.Helper()
	f, ok := err.(*stone.Failure)
	if !ok {
		t.Fatalf("Run returned %T %v, want a *Failure of kind %q", err, err, want)
	}
	if f.Kind != want {
		t.Fatalf("Run returned %v, want kind %q", err, want)
	}
	return f
}

func TestComposites(t *testing.T) {
	upTo := func(n int) dag.Reader[bool] {
		return stone.Until(number, func(got int) bool { return got >= n })
	}
	heal := stone.Func("heal", dag.Failure, word, func(_ context.Context, f dag.FailureContent) (string, error) {
		return "healed " + string(f.Kind), nil
	})
	byWord := stone.On(word, func(w string) string { return w })
	tests := []struct {
		name string
		p    stone.Ashlar
		kind kind.Kind // of the failure
		path string    // of the failure
		want []string
	}{
		{name: "leaf", p: say("a", "x"), want: []string{`word "x"`}},
		{name: "seq", p: stone.Seq("s", say("a", "x"), say("b", "y")), want: []string{`word "x"`, `word "y"`}},
		{
			name: "seq stops", p: stone.Seq("s", say("a", "x"), boom("b"), say("c", "y")),
			kind: kind.Error, path: "s/b",
			want: []string{`word "x"`, `failure {"kind":"error","reason":"boom"}`},
		},
		{name: "loop", p: stone.Loop("l", count("c"), upTo(2), 9), want: []string{"number 0", "number 1", "number 2"}},
		{
			name: "loop exhausted", p: stone.Loop("l", count("c"), upTo(9), 2),
			kind: kind.LoopExhausted, path: "l",
			want: []string{"number 0", "number 1", `failure {"kind":"loop-exhausted","reason":"the condition did not hold after 2 rounds"}`},
		},
		{
			name: "loop stops", p: stone.Loop("l", stone.Seq("s", count("c"), boom("b")), upTo(9), 2),
			kind: kind.Error, path: "l[0]/s/b",
			want: []string{"number 0", `failure {"kind":"error","reason":"boom"}`},
		},
		{
			name: "match", p: stone.Seq("s", say("a", "y"), stone.Match("m", byWord, stone.Case("x", boom("b")), stone.Case("y", say("c", "z")))),
			want: []string{`word "y"`, `word "z"`},
		},
		{
			name: "match failed", p: stone.Seq("s", say("a", "y"), stone.Match("m", byWord, stone.Case("x", boom("b")))),
			kind: kind.MatchFailed, path: "s/m",
			want: []string{`word "y"`, `failure {"kind":"match-failed","reason":"no branch for \"y\": have [\"x\"]"}`},
		},
		{
			name: "match passes a failure on", p: stone.Seq("s", say("a", "x"), stone.Match("m", byWord, stone.Case("x", boom("b")))),
			kind: kind.Error, path: `s/m["x"]/b`,
			want: []string{`word "x"`, `failure {"kind":"error","reason":"boom"}`},
		},
		{
			name: "rescue", p: stone.Rescue("r", stone.Seq("s", say("a", "x"), boom("b")), heal),
			want: []string{`word "x"`, `failure {"kind":"error","reason":"boom"}`, `word "healed error"`},
		},
		{name: "rescue not needed", p: stone.Rescue("r", say("a", "x"), heal), want: []string{`word "x"`}},
		{
			name: "heal fails", p: stone.Rescue("r", boom("a"), boom("b")),
			kind: kind.Error, path: "r/b",
			want: []string{`failure {"kind":"error","reason":"boom"}`, `failure {"kind":"error","reason":"boom"}`},
		},
		{
			name: "map", p: stone.Seq("s", numbers(2), stone.Map("m", list, number, say("a", "x")), last),
			want: []string{"list [0,1]", "number 0", `word "x"`, "number 1", `word "x"`, `word "2"`},
		},
		{
			name: "map empty", p: stone.Seq("s", numbers(0), stone.Map("m", list, number, say("a", "x")), last),
			kind: kind.MapEmpty, path: "s/m",
			want: []string{"list []", `failure {"kind":"map-empty","reason":"no items to fan out over: to allow an empty list, add the option AllowEmpty to the Map"}`},
		},
		{
			name: "map empty, allowed", p: stone.Seq("s", numbers(0), stone.Map("m", list, number, say("a", "x"), stone.AllowEmpty()), last),
			want: []string{"list []", "stone/join {}", `word "0"`},
		},
		{
			name: "parallel", p: stone.Seq("s", stone.Parallel("p", say("a", "x"), say("b", "y")), last),
			want: []string{`stone/origin {}`, `stone/lane {"index":0}`, `word "x"`, `stone/lane {"index":1}`, `word "y"`, `word "2"`},
		},
		{
			name: "lane dropped", p: stone.Seq("s", stone.Parallel("p", stone.Seq("q", say("a", "x"), boom("b")), say("c", "y")), last),
			want: []string{
				`stone/origin {}`, `stone/lane {"index":0}`, `failure {"kind":"error","lane":0,"reason":"boom"}`,
				`stone/lane {"index":1}`, `word "y"`, `word "1"`,
			},
		},
		{
			name: "all lanes failed", p: stone.Seq("s", stone.Parallel("p", boom("a")), last),
			kind: kind.LanesFailed, path: "s/p",
			want: []string{
				`stone/origin {}`, `stone/lane {"index":0}`, `failure {"kind":"error","lane":0,"reason":"boom"}`,
				`failure {"kind":"lanes-failed","reason":"0 of 1 lanes survived, want at least 1; lane 0: boom"}`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result, err := stone.Run(t.Context(), tt.p, stone.Config{})
			wantShow(t, result.DAG, tt.want...)
			if tt.kind == "" {
				if err != nil || result.Node != result.DAG.Latest() {
					t.Errorf("Run returned %v with the node %v, want the last one", err, result.Node)
				}
				return
			}
			f := wantKind(t, err, tt.kind)
			if f.Path != tt.path || result.DAG.Latest().Meta()["path"] != tt.path || result.Node != nil {
				t.Errorf("failed at %q with the node %v, want %q and no node", f.Path, result.Node, tt.path)
			}
		})
	}
}

// A pipeline that Validate rejects fails with its own kind if it is run.
func TestUnchecked(t *testing.T) {
	for want, p := range map[kind.Kind]stone.Ashlar{
		kind.EmptySequence: stone.Seq("s"),
		kind.ParallelEmpty: stone.Parallel("p"),
		kind.MatchFailed:   stone.Match("m", stone.Lens("x"), stone.Case("y", say("a", "x"))),
		kind.MissingInput:  stone.Func("f", word, number, func(_ context.Context, w string) (int, error) { return len(w), nil }),
	} {
		d := stone.RunUnchecked(t.Context(), p, stone.Config{})
		wantKind(t, d.Cause(), want)
		if d.Len() != 0 {
			t.Errorf("%s left the nodes %q, want none", want, show(d))
		}
	}
}

// A failure that is in flight in the input fails the run before anything runs.
func TestFailedInput(t *testing.T) {
	var d dag.DAG
	d = d.WithFailure(dag.NewFailure(d, dag.FailureContent{Kind: "own", Reason: "because"}, nil, time.Time{}), nil)
	result, err := stone.Run(t.Context(), say("a", "x"), stone.Config{Input: d})
	wantKind(t, err, "own")
	wantShow(t, result.DAG, `failure {"kind":"own","reason":"because"}`)
}

// The DAG of a failed run is failed, also after it was written and read, and a run on it
// tells. A body may run a pipeline on a DAG whose latest node is a failure: that is how a
// Rescue repairs.
func TestRunOnFailedRun(t *testing.T) {
	fails := stone.Func0("fails", word, func(context.Context) (string, error) { return "", stone.Fail("own", "because") })
	first, err := stone.Run(t.Context(), fails, stone.Config{})
	wantKind(t, err, "own")
	var file bytes.Buffer
	if err := dag.Write(&file, first.DAG); err != nil {
		t.Fatal(err)
	}
	read, err := dag.Read(&file)
	if err != nil || !first.DAG.Failed() || !read.Failed() {
		t.Fatalf("Failed is %v, and %v after Read (%v), want true", first.DAG.Failed(), read.Failed(), err)
	}
	for _, d := range []dag.DAG{first.DAG, read} {
		next, err := stone.Run(t.Context(), say("next", "x"), stone.Config{Input: d})
		wantKind(t, err, "own")
		if !strings.Contains(err.Error(), "the input is the DAG of a failed run") || !strings.HasSuffix(err.Error(), "because") || !slices.Equal(show(next.DAG), show(d)) {
			t.Errorf("a run on the DAG of a failed run returned %v and %q", err, show(next.DAG))
		}
	}
	more, err := word.Append(read, "again")
	if err != nil || more.Failed() {
		t.Fatalf("Failed is %v after a further node (%v), want false", more.Failed(), err)
	}
	if _, err := stone.Run(t.Context(), say("next", "x"), stone.Config{Input: more}); err != nil {
		t.Error(err)
	}
	repair := stone.New("repair", word, func(ctx context.Context, d dag.DAG) (string, error) {
		r, err := stone.Run(ctx, say("within", "x"), stone.Config{Input: d})
		return fmt.Sprint(r.DAG.Len()), err
	}, stone.Queries(dag.Failure))
	if _, err := stone.Run(t.Context(), stone.Rescue("rescued", fails, repair), stone.Config{}); err != nil {
		t.Error(err)
	}
}

func TestInvalidRunsNothing(t *testing.T) {
	_, err := stone.Run(t.Context(), stone.Seq("s", say("a", "x"), stone.Seq("t")), stone.Config{})
	if !errors.As(err, new(*stone.Invalid)) {
		t.Errorf("Run returned %v, want a *stone.Invalid", err)
	}
}

// The failure names the mistake of the body.
func TestBadBodies(t *testing.T) {
	seed, err := word.Append(dag.DAG{}, "seed")
	if err != nil {
		t.Fatal(err)
	}
	foreign, _ := word.Append(seed, "foreign")
	foreign, _ = word.Append(foreign, "child")
	leaf := func(body func(context.Context, dag.DAG) (*dag.Node, error)) stone.Ashlar {
		return stone.Leaf("leaf", word, body, stone.Queries(word))
	}
	tests := []struct {
		name string
		p    stone.Ashlar
		kind kind.Kind
		want string // in the error
	}{
		{"nil node", leaf(func(context.Context, dag.DAG) (*dag.Node, error) { return nil, nil }), kind.BadContent, "neither a node nor an error"},
		{"other type", leaf(func(_ context.Context, d dag.DAG) (*dag.Node, error) {
			return number.Node(d, 1, time.Time{})
		}), kind.BadContent, `type "number", want "word"`},
		{"foreign parents", leaf(func(context.Context, dag.DAG) (*dag.Node, error) { return foreign.Latest(), nil }), kind.BadContent, "whose parents are not"},
		{"no parents", leaf(func(context.Context, dag.DAG) (*dag.Node, error) { return word.Node(dag.DAG{}, "x", time.Time{}) }), kind.BadContent, "whose parents are not"},
		{"a node that is there", leaf(func(_ context.Context, d dag.DAG) (*dag.Node, error) { return d.Nearest("word") }), kind.BadContent, "whose parents are not"},
		{"failure node", leaf(func(_ context.Context, d dag.DAG) (*dag.Node, error) {
			return dag.NewFailure(d, dag.FailureContent{Kind: "own", Reason: "because"}, nil, time.Time{}), nil
		}), "own", "because"},
		{"panic", leaf(func(context.Context, dag.DAG) (*dag.Node, error) { panic(errBoom) }), kind.Panic, "boom (run_test.go:"},
		{"undeclared", leaf(func(_ context.Context, d dag.DAG) (*dag.Node, error) {
			_, _ = d.Nearest("number")
			return word.Node(d, "all the same", time.Time{})
		}), kind.UndeclaredQuery, `"number"`},
		{"undeclared and a panic", leaf(func(_ context.Context, d dag.DAG) (*dag.Node, error) {
			n, _ := d.Nearest("number")
			return n.Parents()[0], nil
		}), kind.UndeclaredQuery, `"number"`},
		{"undeclared and an error", leaf(func(_ context.Context, d dag.DAG) (*dag.Node, error) {
			_, _ = d.Nearest("number")
			return nil, stone.Fail("own", "no")
		}), kind.UndeclaredQuery, `"number"`},
		{"predicate panics", stone.Loop("l", say("a", "x"), stone.Until(word, func(string) bool { panic("no") }), 2), kind.Panic, "no"},
		{"predicate reads what it should not", stone.Loop("l", say("a", "x"), stone.Until(dag.ReaderFunc(func(d dag.DAG) (bool, error) {
			_, _ = number.From(d)
			return true, nil
		}), func(done bool) bool { return done }), 2), kind.UndeclaredQuery, `"number"`},
		{"extractor panics", stone.Match("m", stone.On(word, func(string) int { panic("no") }), stone.Case(1, say("a", "x"))), kind.Panic, "no"},
		{"items panic", stone.Seq("s", stone.Map("m", dag.Derive(word, func(string) []int { panic("no") }), number, say("a", "x")), last), kind.Panic, "no"},
		{"an item panics", stone.Seq("s", stone.Map("m", dag.Derive(word, func(string) []rudeItem { return []rudeItem{1} }), rude, say("a", "x")), last), kind.BadContent, "rude"},
		{"question panics", stone.Ask("ask", dag.Nothing, dag.NewType[stone.Answer]("answer"), func(struct{}) string { panic("no") }), kind.Panic, "no"},
		{"step panics", stone.Func0("f", word, func(ctx context.Context) (string, error) {
			return stone.Step(ctx, "s", nil, func(context.Context, any) (string, error) { panic("no") })
		}), kind.Panic, "no"},
		{"scoped panics", stone.Scoped("c", stone.Walk{}, func(context.Context, dag.DAG) (dag.DAG, error) { panic("no") }), kind.Panic, "no"},
		{"scoped returns another DAG", stone.Scoped("c", stone.Walk{}, func(context.Context, dag.DAG) (dag.DAG, error) {
			return dag.DAG{}, nil
		}), kind.BadContent, "does not extend"},
		{"scoped fails without a DAG", stone.Scoped("c", stone.Walk{}, func(context.Context, dag.DAG) (dag.DAG, error) {
			return dag.DAG{}, errBoom
		}), kind.Error, "boom"},
		{"scoped returns a failure of its own", stone.Scoped("c", stone.Walk{}, func(_ context.Context, d dag.DAG) (dag.DAG, error) {
			return d.WithFailure(dag.NewFailure(d, dag.FailureContent{Kind: "own", Reason: "because"}, nil, time.Time{}), nil), nil
		}), "own", "because"},
		{"content without JSON", stone.Func0("f", dag.NewType[float64]("float"), func(context.Context) (float64, error) { return nan(), nil }), kind.BadContent, "NaN"},
	}
	for _, tt := range tests {
		for _, recorder := range []step.Recorder{nil, new(forgetful)} {
			t.Run(fmt.Sprintf("%s/%T", tt.name, recorder), func(t *testing.T) {
				result, err := stone.Run(t.Context(), tt.p, stone.Config{Input: seed, Recorder: recorder})
				f := wantKind(t, err, tt.kind)
				if !strings.Contains(f.Reason, tt.want) || tt.kind == "own" && f.Reason != tt.want {
					t.Errorf("reason %q, want %q", f.Reason, tt.want)
				}
				if stack := result.DAG.Latest().Meta()["stack"]; (tt.kind == kind.Panic) != strings.Contains(stack, "goroutine") {
					t.Errorf("the failure has the stack %q", stack)
				}
			})
		}
	}
}

func nan() float64 { var zero float64; return zero / zero }

// rudeItem panics when it is marshalled.
type rudeItem int

func (rudeItem) MarshalText() ([]byte, error) { panic("rude") }

var rude = dag.NewType[rudeItem]("rude")

// forgetful is a Recorder that remembers nothing.
type forgetful struct{}

func (*forgetful) Do(ctx context.Context, _ step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	return work(ctx)
}

func TestErrorsThroughFailure(t *testing.T) {
	type coded struct{ error }
	p := stone.Seq("s", stone.Rescue("r", boom("a"), stone.Func0("b", word, func(context.Context) (string, error) {
		return "", fmt.Errorf("around: %w", stone.Fail("own", "two of them: %w and %w", errBoom, coded{context.DeadlineExceeded}))
	})))
	_, err := stone.Run(t.Context(), p, stone.Config{})
	f := wantKind(t, err, "own")
	if !errors.Is(err, errBoom) || !errors.As(err, new(coded)) {
		t.Errorf("%v does not lead to its causes", err)
	}
	if f.Path != "s/r/b" {
		t.Errorf("failed at %q, want s/r/b", f.Path)
	}
}

func TestScoped(t *testing.T) {
	a, b := count("a"), boom("b")
	t.Run("visits", func(t *testing.T) {
		var mu sync.Mutex
		var paths []string
		where := stone.New("where", number, func(ctx context.Context, d dag.DAG) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			paths = append(paths, stone.In(ctx).Path())
			return len(paths), nil
		})
		p := stone.Scoped("c", stone.Walk{}.InOrder(where), func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
			for range 2 {
				d = stone.In(ctx).RunChild(where, d)
			}
			if _, err := stone.Step(ctx, "where", nil, func(ctx context.Context, _ any) (int, error) {
				paths = append(paths, stone.In(ctx).Path())
				return 0, nil
			}); err != nil {
				return d, err
			}
			return stone.In(ctx).RunChild(where, d), nil
		})
		result, err := stone.Run(t.Context(), stone.Seq("s", p, p), stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if result.DAG.Len() != 6 {
			t.Errorf("%q, want six numbers", show(result.DAG))
		}
		want := []string{"s/c/where", "s/c/where@2", "s/c/where@3", "s/c/where@4", "s/c#2/where", "s/c#2/where@2", "s/c#2/where@3", "s/c#2/where@4"}
		if diff := cmp.Diff(want, paths); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("nothing is lost", func(t *testing.T) {
		for name, end := range map[string]func(dag.DAG) (dag.DAG, error){
			"error without a DAG": func(dag.DAG) (dag.DAG, error) { return dag.DAG{}, errBoom },
			"error with a DAG":    func(d dag.DAG) (dag.DAG, error) { return d, errBoom },
			"panic":               func(dag.DAG) (dag.DAG, error) { panic(errBoom) },
		} {
			p := stone.Scoped("c", stone.Walk{}.InOrder(a), func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
				return end(stone.In(ctx).RunChild(a, d))
			})
			result, err := stone.Run(t.Context(), stone.Seq("s", count("x"), p), stone.Config{})
			if !errors.Is(err, errBoom) || result.DAG.Len() != 3 {
				t.Errorf("%s: %q, %v; want both numbers and the failure", name, show(result.DAG), err)
			}
		}
	})
	t.Run("failure passes through children", func(t *testing.T) {
		p := stone.Scoped("c", stone.Walk{}.InOrder(a, b), func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
			return stone.In(ctx).RunChild(a, stone.In(ctx).RunChild(b, d)), nil
		})
		result, err := stone.Run(t.Context(), p, stone.Config{})
		wantKind(t, err, kind.Error)
		wantShow(t, result.DAG, `failure {"kind":"error","reason":"boom"}`)
	})
	t.Run("foreign child", func(t *testing.T) {
		p := stone.Scoped("c", stone.Walk{}.InOrder(a), func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
			return stone.In(ctx).RunChild(b, d), nil
		})
		_, err := stone.Run(t.Context(), p, stone.Config{})
		wantKind(t, err, kind.Error)
	})
	t.Run("outside a run", func(t *testing.T) {
		if d := stone.In(t.Context()).RunChild(a, dag.DAG{}); !d.Failed() {
			t.Error("RunChild outside a run did not fail")
		}
	})
}

func TestBigContent(t *testing.T) {
	const size = 50 << 20
	text := strings.Repeat("x", size)
	result, err := stone.Run(t.Context(), stone.Seq("s", say("a", text),
		stone.Func("b", word, number, func(_ context.Context, w string) (int, error) { return len(w), nil })), stone.Config{Recorder: new(forgetful)})
	if err != nil || result.Node.JSON() != fmt.Sprint(size) {
		t.Fatalf("%v, %v", result.Node, err)
	}
}

// TestBadNames shows that names are refused that no path and no event can show. A slash
// is no such name: an address escapes it.
func TestBadNames(t *testing.T) {
	for name, why := range map[string]string{"\xff": "UTF-8", "a\nb": "control", "\x1b[31m": "control", " \t": "blank"} {
		p := stone.Seq("s", stone.Func0(name, number, func(context.Context) (int, error) { return 1, nil }))
		errs := stone.Validate(p, stone.Given{}).Errors()
		if len(errs) != 1 || errs[0].Type != "bad-name" || !strings.Contains(errs[0].Message, why) {
			t.Errorf("%q: %v, want bad-name because of %s", name, errs, why)
		}
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"a/b", "a[0]", "a#2", "a@2", "a%2F", "a~2", "żółw 🐢", "/"} {
		var path string
		typ := dag.NewType[int]("type of " + strings.ToValidUTF8(name, "?"))
		p := stone.Func0(name, typ, func(ctx context.Context) (int, error) { path = stone.In(ctx).Path(); return 1, nil })
		result, err := stone.Run(t.Context(), stone.Seq("s", p), stone.Config{})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if result.Node.Type() != typ.Name() || strings.Count(path, "/") != 1 || strings.ContainsAny(path, "[]#@~") {
			t.Errorf("%q has the path %q, type %q", name, path, result.Node.Type())
		}
	}
}
