package journaltest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// testRefused checks that the state of a run shows that a server refused it, that everything else is kept, and that the run
// continues with the old pipeline.
func testRefused(t *testing.T, j tested) {
	var c counter
	write := c.leaf("write", draft, ok)
	approve := stone.Ask("approve", dag.Nothing, reply, func(struct{}) string { return "Publish?" }, stone.Choices("yes", "no"))
	before := stone.Seq("all", write, approve, c.leaf("publish", final, ok))
	now := stone.Seq("all", write, c.leaf("check", draft, ok), approve, c.leaf("publish", final, ok))
	refuse := journal.Options{Refuse: true}
	if _, err := run(t, j, before, refuse); !errors.Is(err, kind.Waiting) {
		t.Fatalf("the run waits: %v", err)
	}
	waiting := wantState(t, j, journal.Waiting)
	must(t, j.Answer(t.Context(), "run", "all/approve", ask.Answer{Response: "yes"}))
	if _, err := run(t, j, now, journal.Options{}); !errors.As(err, new(*journal.ChangedError)) {
		t.Fatalf("another pipeline: %v, want a ChangedError", err)
	}
	wantState(t, j, journal.Answered) // without Options.Refuse, nothing is recorded

	var refused journal.RunInfo
	later := config()
	later.Now = func() time.Time { return moment.Add(time.Hour) }
	for i := range 2 {
		if _, err := stone.Run(t.Context(), now, kept(later, j, refuse)); !errors.As(err, new(*journal.ChangedError)) {
			t.Fatalf("another pipeline: %v, want a ChangedError", err)
		}
		info := wantState(t, j, journal.Refused)
		if runs, err := j.open().Runs(t.Context(), journal.Query{Ended: info.Ended}); err != nil || len(runs) != 1 {
			t.Errorf("%d runs ended since it was refused, %v; want it", len(runs), err)
		}
		if i > 0 && !info.Ended.Equal(refused.Ended) {
			t.Errorf("it was refused once more at %v, want %v", info.Ended, refused.Ended)
		}
		refused = info
	}
	if c, ok := j.open().(interface {
		Check(ctx context.Context, found func(*journal.DamageError)) (runs, records int, err error)
	}); ok {
		_, _, err := c.Check(t.Context(), func(e *journal.DamageError) { t.Errorf("after it was refused: %v", e) })
		must(t, err)
	}
	if f := refused.Failure; f == nil || f.Reason != "all/check was added" {
		t.Errorf("the failure is %+v", f)
	}
	rest := func(o journal.Outcome) string {
		o.State, o.Ended, o.Failure = "", time.Time{}, nil
		text, err := json.Marshal(o)
		must(t, err)
		return string(text)
	}
	if diff := cmp.Diff(rest(waiting.Outcome), rest(refused.Outcome)); diff != "" {
		t.Errorf("refusing changed the outcome (-want +got):\n%s", diff)
	}
	d, err := j.DAG(t.Context(), "run")
	if err != nil || d.Len() == 0 {
		t.Errorf("it has %d nodes: %v", d.Len(), err)
	}
	if runs, err := journal.Resumable(t.Context(), j); err != nil || len(runs) != 1 {
		t.Errorf("a server that starts finds %d runs, %v; want the refused one", len(runs), err)
	}
	c.want(t, "write:1")

	mustRun(t, j, before, refuse)
	wantState(t, j, journal.Done)
	if _, err := run(t, j, now, refuse); !errors.As(err, new(*journal.ChangedError)) {
		t.Errorf("another pipeline: %v, want a ChangedError", err)
	}
	wantState(t, j, journal.Done) // a run that is done stays done
	c.want(t, "publish:1 write:1")
}

// testRefusedForce checks that the cost is recorded when the run of a dead process is refused, and that the run continues with
// Options.Force.
func testRefusedForce(t *testing.T, j tested) {
	var c counter
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	drain := make(chan struct{})
	first := c.leaf("first", draft, func(int) (string, error) { close(drain); return "", nil })
	before := stone.Seq("all", first, c.leaf("second", final, ok))
	now := stone.Seq("all", first, c.leaf("third", draft, ok), c.leaf("second", final, ok))
	if _, err := stone.Run(ctx, before, kept(config(), j, journal.Options{Drain: drain})); !errors.Is(err, journal.ErrDrained) {
		t.Fatalf("the run is drained: %v", err)
	}
	if _, err := run(t, j, now, journal.Options{Refuse: true}); !errors.As(err, new(*journal.ChangedError)) {
		t.Fatalf("another pipeline: %v, want a ChangedError", err)
	}
	if info := wantState(t, j, journal.Refused); info.Steps != 1 {
		t.Errorf("it has %d steps, want 1", info.Steps)
	}
	mustRun(t, j, now, journal.Options{Refuse: true, Force: true})
	if info := wantState(t, j, journal.Done); info.Failure != nil {
		t.Errorf("after its end it has the failure %+v", info.Failure)
	}
	c.want(t, "first:1 second:1 third:1")
}
