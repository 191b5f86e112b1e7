package journaltest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// flow returns a pipeline whose steps are recorded with nodes that are not in the DAG of the run. One of the steps keeps a node
// that it created during the run.
func flow() stone.Ashlar {
	all := dag.NewType[[]string]("all")
	say := func(name string, in, out dag.Type[string]) stone.Ashlar {
		return stone.Func(name, in, out, func(_ context.Context, s string) (string, error) { return s + " " + name, nil })
	}
	first, second, kept := dag.NewType[string]("first"), dag.NewType[string]("second"), dag.NewType[string]("kept")
	dynamic := stone.New("dynamic", kept, func(ctx context.Context, d dag.DAG) (string, error) {
		lane, err := dag.Origin(d)
		if err != nil {
			return "", err
		}
		made := stone.In(ctx).RunDynamic(stone.Func0("made", final, func(context.Context) (string, error) { return "made", nil }), lane, nil)
		_, err = stone.In(ctx).Keep(lane, made)
		return "kept", err
	}, stone.Queries(draft))
	sum := stone.New("sum", all, func(_ context.Context, d dag.DAG) (out []string, err error) {
		for _, typ := range []dag.Type[string]{first, second, kept} {
			s, err := typ.From(d)
			if err != nil {
				return nil, err
			}
			out = append(out, s)
		}
		return out, nil
	}, stone.Queries(first, second, kept))
	start := stone.Func0("start", draft, func(context.Context) (string, error) { return "start", nil })
	return stone.Seq("run", start, stone.Flow("flow", say("a", draft, first), say("b", draft, second), dynamic, sum))
}

// testFlow checks that the journal contains exactly the nodes of the run, in the same order.
func testFlow(t *testing.T, j tested) {
	result := mustRun(t, j, flow(), journal.Options{})
	want := text(t, result.DAG)
	again := mustRun(t, j.open(), flow(), journal.Options{})
	got, err := j.open().DAG(t.Context(), "run")
	must(t, err)
	for name, d := range map[string]dag.DAG{"the journal": got, "the run that is replayed": again.DAG} {
		if diff := cmp.Diff(want, text(t, d)); diff != "" {
			t.Errorf("%s has another DAG (-want +got):\n%s", name, diff)
		}
	}
}

func text(t *testing.T, d dag.DAG) string {
	t.Helper()
	var out bytes.Buffer
	must(t, dag.Write(&out, d))
	return out.String()
}

// testSameFlow checks that Diff finds no difference between two equal runs, although their times are different.
func testSameFlow(t *testing.T, j tested) {
	for i, id := range []string{"one", "two"} {
		cfg := config()
		cfg.RunID = id
		cfg.Now = func() time.Time { return moment.Add(time.Duration(i) * time.Hour) }
		_, err := stone.Run(t.Context(), flow(), kept(cfg, j, journal.Options{}))
		must(t, err)
	}
	diff, err := journal.Diff(t.Context(), j, "one", "two")
	must(t, err)
	if len(diff) > 0 {
		t.Errorf("Diff of two runs that did the same: %+v", diff)
	}
}
