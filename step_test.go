package stone_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

func TestReuse(t *testing.T) {
	memory := memdb.New(t)
	runs := map[string]int{}
	pipeline := func(input, version string) stone.Ashlar {
		return stone.Seq("s", say("a", input), say("noise", input+version, stone.Version(version)),
			stone.New("b", number, func(_ context.Context, d dag.DAG) (int, error) {
				runs["b"]++
				words, err := dag.All(word).From(d)
				return len(words[0]), err
			}, stone.Queries(dag.All(word)), stone.Reusable()),
			stone.Func0("c", list, func(context.Context) ([]int, error) { runs["c"]++; return []int{1}, nil }, stone.Reusable(), stone.Version(version)))
	}
	for i, tt := range []struct {
		input, version string
		b, c           int // how often they ran so far
	}{{"x", "1", 1, 1}, {"x", "1", 1, 1}, {"xy", "1", 2, 1}, {"xy", "2", 3, 2}, {"x", "1", 3, 2}} {
		result, err := stone.Run(t.Context(), pipeline(tt.input, tt.version), stone.Config{RunID: fmt.Sprint(i), Recorder: memory})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := dag.All(number).From(result.DAG); err != nil || n[0] != len(tt.input) {
			t.Errorf("run %d: %v, %v; want %d", i, n, err, len(tt.input))
		}
		if runs["b"] != tt.b || runs["c"] != tt.c {
			t.Errorf("run %d of %q at version %s: b and c ran %v so far, want %d and %d", i, tt.input, tt.version, runs, tt.b, tt.c)
		}
	}
}

func TestStep(t *testing.T) {
	t.Run("outside a run", func(t *testing.T) {
		got, err := stone.Step(t.Context(), "s", nil, func(context.Context, any) (int, error) { return 1, errBoom })
		if got != 0 || err != errBoom {
			t.Errorf("Step = %d, %v", got, err)
		}
		type lossy struct {
			Kept int
			lost int
		}
		if got, err := stone.Step(t.Context(), "s", nil, func(context.Context, any) (lossy, error) { return lossy{1, 2}, nil }); got != (lossy{Kept: 1}) || err != nil {
			t.Errorf("Step = %+v, %v; want what JSON keeps", got, err)
		}
	})
	t.Run("two of one name at once", func(t *testing.T) {
		_, err := stone.Run(t.Context(), stone.Func0("a", word, func(ctx context.Context) (string, error) {
			return stone.Step(ctx, "s", nil, func(context.Context, any) (string, error) {
				return stone.Step(ctx, "s", nil, func(context.Context, any) (string, error) { return "x", nil })
			})
		}), stone.Config{})
		if f := wantKind(t, err, kind.Error); !strings.Contains(f.Reason, "already running") {
			t.Errorf("Run returned %v", err)
		}
	})
	t.Run("within a step", func(t *testing.T) {
		var paths []string
		_, err := stone.Run(t.Context(), stone.Func0("a", word, func(ctx context.Context) (string, error) {
			return stone.Step(ctx, "s", nil, func(ctx context.Context, _ any) (string, error) {
				for range 2 {
					if _, err := stone.Step(ctx, "s", nil, func(ctx context.Context, _ any) (int, error) {
						paths = append(paths, stone.In(ctx).Path())
						return 0, nil
					}); err != nil {
						return "", err
					}
				}
				return "x", nil
			})
		}), stone.Config{})
		if diff := cmp.Diff([]string{"a/s/s", "a/s/s@2"}, paths); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
	t.Run("sees what a replay would", func(t *testing.T) {
		type lossy struct {
			Kept int
			lost int
		}
		for _, recorder := range []step.Recorder{nil, memdb.New(t)} {
			_, err := stone.Run(t.Context(), stone.Func0("a", word, func(ctx context.Context) (string, error) {
				got, err := stone.Step(ctx, "s", nil, func(context.Context, any) (lossy, error) { return lossy{1, 2}, nil })
				if got != (lossy{Kept: 1}) {
					t.Errorf("Step returned %+v, want what JSON keeps", got)
				}
				return "x", err
			}), stone.Config{Recorder: recorder})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("is refused when its leaf reads something else", func(t *testing.T) {
		memory := memdb.New(t)
		run := func(input string) string {
			result, err := stone.Run(t.Context(), stone.Seq("s", say("a", input, stone.Version(input)), stone.Func("b", word, list, func(ctx context.Context, w string) ([]int, error) {
				n, err := stone.Step(ctx, "len", nil, func(context.Context, any) (int, error) { return len(w), nil })
				return []int{n}, err
			})), stone.Config{RunID: "r", Recorder: memory})
			if errors.Is(err, kind.Replay) {
				return err.Error()
			}
			if err != nil {
				t.Fatal(err)
			}
			return result.Node.JSON()
		}
		if a, b := run("x"), run("xyz"); a != "[1]" || !strings.Contains(b, "s/a: the recorded leaf is refused") {
			t.Errorf("%s and %s, want [1] and the refusal of the first leaf", a, b)
		}
	})
}

// remembers is a recorder of nothing whose other process has recorded the steps with some paths.
type remembers struct{ paths []string }

func (remembers) Do(ctx context.Context, _ step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	return work(ctx)
}

func (r remembers) Has(key step.Key) bool {
	return key.RunID == "r" && key.Kind == "step" && key.Name != "" && slices.Contains(r.paths, key.Path)
}

// A body is told which of its steps the recorder has, and, in a further attempt, which an earlier
// attempt has made.
func TestBodyRecorded(t *testing.T) {
	type answer struct{ recorded, repeated bool }
	var got []answer
	look := func(ctx context.Context, name string) {
		recorded, repeated := stone.In(ctx).Recorded(name)
		got = append(got, answer{recorded, repeated})
	}
	out := dag.NewType[int]("out")
	tried := 0
	p := stone.Seq("all", stone.Func0("leaf", out, func(ctx context.Context) (int, error) {
		for _, name := range []string{"a/b", "new"} {
			look(ctx, name)
		}
		tried++
		if _, err := stone.Step(ctx, "new", 1, func(ctx context.Context, _ int) (int, error) {
			look(ctx, "new") // a step of the step
			return 1, nil
		}); err != nil {
			return 0, err
		}
		look(ctx, "new") // made by this attempt
		if tried == 1 {
			return 0, errors.New("once more")
		}
		return 1, nil
	}, stone.Retry{Attempts: 2}))
	look(t.Context(), "a/b")
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: remembers{[]string{"all/leaf/a%2Fb", "all/leaf~2/a%2Fb"}}}); err != nil {
		t.Fatal(err)
	}
	want := []answer{
		{false, false}, // outside a run
		{true, false}, {false, false}, {false, false}, {false, false},
		{true, false}, {false, true}, {false, true}, // the second attempt takes the step from the first
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
