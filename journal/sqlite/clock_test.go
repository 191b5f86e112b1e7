package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
)

// A clock that jumps back an hour changes nothing: neither who holds a run, nor
// what is replayed, nor the order of steps.
func TestClockJumpsBack(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	clock := stopped()
	now = func() time.Time { return clock }
	t.Cleanup(func() { now = time.Now })
	holder, other := open(t, file, Options{}), open(t, file, Options{Lease: 100 * time.Millisecond})

	calls := 0
	p := stone.Seq("all", stone.Func0("first", draft, func(context.Context) (string, error) {
		calls++
		clock = clock.Add(-time.Hour)
		_, err := other.Acquire(context.Background(), "r")
		var held *journal.HeldError
		if !errors.As(err, &held) {
			t.Errorf("after the clock jumped the run was taken over: %v", err)
		}
		return "x", nil
	}), stone.Func0("second", joined, func(context.Context) (string, error) { return "y", nil }))
	cfg := stone.Config{RunID: "r", Now: now}
	first, err := stone.Run(t.Context(), p, kept(cfg, holder))
	if err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(-time.Hour)
	again, err := stone.Run(t.Context(), p, kept(cfg, other))
	if err != nil || calls != 1 || again.Node.ID() != first.Node.ID() {
		t.Errorf("resumed: %v, %d calls, node %v; want one call and node %v", err, calls, again.Node, first.Node)
	}
	steps, err := other.Steps(t.Context(), "r")
	if err != nil || len(steps) != 2 || steps[0].Name != "first" || !steps[1].Ended.Before(steps[0].Started) {
		t.Errorf("steps %+v, %v; want first and second, in spite of the times", steps, err)
	}
	runs, err := other.Runs(t.Context(), journal.Query{})
	if err != nil || len(runs) != 1 || runs[0].State != journal.Done {
		t.Errorf("runs %+v, %v", runs, err)
	}
}

func hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown-host"
	}
	return host
}

// A run whose process was killed is interrupted, although its lease was not given up.
func TestDeadOwnerIsInterrupted(t *testing.T) {
	db := open(t, filepath.Join(memdir.New(t), "stone.db"), Options{})
	const noSuchProcess = "/999999999/"
	for _, c := range []struct {
		owner string
		want  journal.State
	}{
		{hostname() + noSuchProcess + "ab", journal.Interrupted}, {"elsewhere" + noSuchProcess + "ab", journal.Running},
		{hostname() + fmt.Sprintf("/%d/ab", os.Getpid()), journal.Running}, {"", journal.Interrupted},
	} {
		execute(t, db.file.name, fmt.Sprintf("INSERT OR REPLACE INTO runs (id, owner, beat, lease, rows) VALUES ('r', '%s', 0, 5000, 1)", c.owner))
		info, err := db.Find(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		if info.State != c.want || (info.Owner != "") != (c.want == journal.Running) {
			t.Errorf("a run of %q is %s, owned by %q; want it %s", c.owner, info.State, info.Owner, c.want)
		}
	}
}

// A run that is left while it is loaded stops being loaded.
func TestReleaseWhileLoading(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	db := open(t, file, Options{})
	for n := range byte(200) {
		do(t, db, stepKey("r", n+1))
	}
	for range 20 {
		if err := db.Release("r"); err != nil {
			t.Fatal(err)
		}
		if !do(t, db, stepKey("r", 1)).Replayed {
			t.Fatal("the first step was not replayed")
		}
	}
	if do(t, db, stepKey("r", 201)).Replayed {
		t.Error("a new step was replayed")
	}
}

// The nodes after a failed end leave the record when the run continues.
func TestTailIsRemoved(t *testing.T) {
	db := open(t, "", Options{})
	fails := true
	p := stone.Func0("a", draft, func(context.Context) (string, error) {
		if fails {
			return "", errors.New("no luck")
		}
		return "x", nil
	})
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})}); err == nil {
		t.Fatal("the run did not fail")
	}
	d, err := db.DAG(t.Context(), "r")
	if err != nil || d.Len() != 1 || d.Latest().Type() != dag.Failure.Name() {
		t.Errorf("after the failure: %d nodes, %v; want the failure", d.Len(), err)
	}
	fails = false
	if _, err = stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})}); err != nil {
		t.Fatal(err)
	}
	if d, err = db.DAG(t.Context(), "r"); err != nil || d.Len() != 1 || d.Latest().Text() != "x" {
		t.Errorf("after the second try: %d nodes, %v; want the result", d.Len(), err)
	}
}

// kept returns a Config whose run is kept in j.
func kept(cfg stone.Config, j journal.Journal) stone.Config {
	cfg.Recorder = journal.Keep(j, journal.Options{})
	return cfg
}
