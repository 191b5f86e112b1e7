package journaltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// tree returns a pipeline with a step in each of several lanes, one of which is lost.
func tree(name func(int)) stone.Ashlar {
	read := stone.Func0("read", plan, func(context.Context) ([]int, error) { return []int{0, 1, 2}, nil })
	lane := stone.New("work", draft, func(ctx context.Context, d dag.DAG) (string, error) {
		return stone.Step(ctx, "ask", nil, func(context.Context, any) (string, error) {
			i, err := item.From(d)
			if err == nil && name != nil {
				name(i)
			}
			if i == 1 {
				return "", stone.Fail("unlucky", "the second")
			}
			return "ok", err
		})
	}, stone.Queries(item))
	count := stone.Reduce(stone.New("count", final, func(context.Context, dag.DAG) (string, error) { return "ok", nil }, stone.Queries(dag.All(draft))))
	return stone.Seq("all", read, stone.Map("each", plan, item, lane, stone.Quorum(2), stone.Lanes(1)), count)
}

func testFollow(t *testing.T, j tested) {
	i := j.open()
	for _, err := range i.Follow(t.Context(), "run", 0) {
		if !errors.Is(err, journal.ErrNoRun) {
			t.Errorf("Follow of an unknown run: %v, want ErrNoRun", err)
		}
	}
	running, seen, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := stone.Run(context.WithoutCancel(t.Context()), tree(func(lane int) {
			if lane == 0 {
				close(running)
				<-seen // the run continues only when the follower has seen its step
			}
		}), kept(config(), j, journal.Options{}))
		ended <- err
	}()
	<-running
	var last int64
	var lines []string
	started := map[string]bool{}
	for row, err := range i.Follow(t.Context(), "run", 0) {
		if err != nil {
			t.Errorf("Follow: %v", err)
			break
		}
		if row.Seq < last || row.Time.IsZero() {
			t.Errorf("after %d comes %+v", last, row)
		}
		last = row.Seq
		if !row.Ended {
			started[row.Kind+row.Path] = true
			if row.Path == "all/each[0]/work/ask" {
				close(seen)
			}
			continue
		}
		if !started[row.Kind+row.Path] {
			t.Errorf("%s ended before it started", row.Path)
		}
		lines = append(lines, strings.TrimSpace(row.Kind+" "+row.Path+" "+row.Failure))
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	got := strings.Join(lines, "\n")
	for _, want := range []string{"leaf all/read", "step all/each[0]/work/ask", "leaf all/each[0]/work", "step all/each[1]/work/ask unlucky", "leaf all/count"} {
		if strings.Count(got+"\n", want+"\n") != 1 {
			t.Errorf("followed:\n%s\nwant %q once", got, want)
		}
	}
	for row := range i.Follow(t.Context(), "run", last) {
		t.Errorf("after the last row comes %+v", row)
	}
	at, err := i.Last(t.Context(), "run")
	if err != nil || at < last {
		t.Errorf("Last is %d, %v, want at least %d", at, err, last)
	}
	if _, err := i.Last(t.Context(), "nothing"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("the last row of an unknown run: %v, want ErrNoRun", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begin(t, j, journal.RunInfo{ID: "idle"})
	if at, err := i.Last(t.Context(), "idle"); err != nil || at != 0 {
		t.Errorf("the last row of a run without one: %d, %v", at, err)
	}
	for _, err := range i.Follow(canceled(ctx, cancel), "idle", 0) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Follow of a run in which nothing happens: %v, want that it was cancelled", err)
		}
	}
	must(t, j.Release("idle"))
}

func canceled(ctx context.Context, cancel context.CancelFunc) context.Context {
	cancel()
	return ctx
}

func testOutline(t *testing.T, j tested) {
	i := j.open()
	if _, err := i.Outline(t.Context(), "run"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("Outline of an unknown run: %v, want ErrNoRun", err)
	}
	mustRun(t, j, tree(nil), journal.Options{})
	o, err := i.Outline(t.Context(), "run")
	must(t, err)
	for path, want := range map[string]string{
		"":                 "[all+]",
		"all":              "[all/read all/each+ all/count]",
		"all/each":         "[all/each[0]+ all/each[1]+ all/each[2]+]",
		"all/each[1]":      "[all/each[1]/work+]",
		"all/each[1]/work": "[all/each[1]/work/ask]",
		"all/e":            "[]",
	} {
		level, err := o.Level(t.Context(), path, journal.Page{})
		must(t, err)
		var got []string
		for _, b := range level.Branches {
			name := b.Path
			if b.Below > 0 {
				name += "+"
			}
			if got = append(got, name); b.Started.IsZero() || b.Ended.Before(b.Started) {
				t.Errorf("%s started at %v and ended at %v", b.Path, b.Started, b.Ended)
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("below %q: %v, want %s", path, got, want)
		}
	}
	if _, err := o.Level(t.Context(), "all", journal.Page{Only: "odd"}); err == nil || !strings.Contains(err.Error(), `state "odd": want one of`) {
		t.Errorf("an unknown state: %v", err)
	}
	level, err := o.Level(t.Context(), "all", journal.Page{From: "all/each", Limit: 1})
	must(t, err)
	each := level.Branches[0]
	if level.All != 3 || level.Next != "all/count" || level.Hidden != 1 || level.Sum.Recorded != 9 {
		t.Errorf("the level has %d branches, %d after %q, and %d steps; want 3, 1, all/count and 9", level.All, level.Hidden, level.Next, level.Sum.Recorded)
	}
	if each.Step == nil || each.Step.Kind != "decision" || each.Recorded != 7 || each.Failed != 2 || each.Open != 0 {
		t.Errorf("the lanes in sum: %+v, want 7 steps, 2 of them failed, and the decision about the items", each)
	}
}

func testNode(t *testing.T, j tested) {
	i := j.open()
	result := mustRun(t, j, tree(nil), journal.Options{})
	n := result.Node
	for _, prefix := range []string{n.ID().String(), n.ID().String()[:15]} { // the prefix may end in the middle of a byte
		got, err := i.Node(t.Context(), "run", prefix)
		if err != nil || got.ID != n.ID() || got.Type != n.Type() || string(got.Content) != n.JSON() || len(got.Parents) != len(n.Parents()) || got.Parents[0] != n.Parent().ID() {
			t.Errorf("Node(%s): %+v, %v; want %s", prefix, got, err, n)
		}
	}
	for _, prefix := range []string{dag.ID{7}.String(), "", "x", n.ID().String() + "00"} {
		if _, err := i.Node(t.Context(), "run", prefix); !errors.Is(err, journal.ErrNoNode) {
			t.Errorf("Node(%q) of an unknown node: %v, want ErrNoNode", prefix, err)
		}
	}
	if _, err := i.Node(t.Context(), "none", n.ID().String()); !errors.Is(err, journal.ErrNoNode) {
		t.Errorf("Node of an unknown run: %v, want ErrNoNode", err)
	}
}

// testNodePrefix looks for a prefix that two IDs have in common. Of 17 nodes, at least two have the same first digit.
func testNodePrefix(t *testing.T, j tested) {
	var d dag.DAG
	count := map[string]int{}
	for i := range 17 {
		n, err := dag.NewNode(dag.Spec{Type: "t", Content: i, Parents: d.Next(), Time: moment})
		must(t, err)
		d, err = d.Append(n)
		must(t, err)
		count[n.ID().String()[:1]]++
	}
	begin(t, j, journal.RunInfo{ID: "run"})
	rec := value("")
	rec.Node = d.Latest()
	rec.Type, rec.Content = rec.Node.Type(), rec.Node.Content()
	do(t, j, key("a"), rec)
	for prefix, n := range count {
		got, err := j.open().Node(t.Context(), "run", prefix)
		if n == 1 {
			if err != nil || got.ID.String()[:1] != prefix {
				t.Errorf("Node(%q), with which one id begins: %s, %v", prefix, got.ID, err)
			}
			continue
		}
		several, ok := errors.AsType[*journal.AmbiguousError](err)
		if !ok || several.Run != "run" || len(several.Found) != min(n, 6) && len(several.Found) != n {
			t.Errorf("Node(%q), with which %d ids begin: %v, want an AmbiguousError", prefix, n, err)
		}
	}
}

// testInner tests inner runs.
func testInner(t *testing.T, j tested) {
	other := j.open()
	begin(t, j, journal.RunInfo{ID: "exp"})
	begin(t, j, journal.RunInfo{ID: "exp/17"})
	k := key("a")
	k.RunID = "exp/17"
	do(t, j, k, value("one"))
	_, err := other.Acquire(t.Context(), "exp/17")
	wantHeld(t, err, "exp/17")
	if info, err := other.Find(t.Context(), "exp/17"); err != nil || info.State != journal.Running || info.Owner == "" {
		t.Errorf("Find of a running inner run: %+v, %v; want it running, with an owner", info, err)
	}
	finish(t, j, "exp/17", journal.Outcome{State: journal.Done})

	begin(t, j, journal.RunInfo{ID: "exp/open"})
	k.RunID = "exp/open"
	do(t, j, k, value("two"))
	finish(t, j, "exp", journal.Outcome{State: journal.Done})
	for id, want := range map[string]journal.State{"exp": journal.Done, "exp/17": journal.Done, "exp/open": journal.Interrupted} {
		if info, err := other.Find(t.Context(), id); err != nil || info.State != want || info.Owner != "" {
			t.Errorf("%s after the outer run was released: %+v, %v; want it %s, without an owner", id, info, err, want)
		}
	}
	for row, err := range other.Follow(t.Context(), "exp/open", 0) { // must end
		if err != nil || row.Path != k.Path {
			t.Errorf("Follow of an inner run that was left: %+v, %v", row, err)
		}
	}
	_, err = other.Acquire(t.Context(), "exp/open")
	must(t, err)
	recorder{t, other}.replay(k)
	must(t, other.Release("exp/open"))
}
