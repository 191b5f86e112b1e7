package journaltest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

func testDrain(t *testing.T, j tested) {
	var c counter
	drain := make(chan struct{})
	p := stone.Seq("all", c.leaf("first", draft, func(int) (string, error) { close(drain); return "done", nil }), c.leaf("second", final, ok))
	_, err := run(t, j, p, journal.Options{Drain: drain})
	if f, ok := errors.AsType[*stone.Failure](err); !errors.Is(err, journal.ErrDrained) || !ok || f.Kind != kind.Canceled {
		t.Errorf("Run: %v, want canceled by ErrDrained", err)
	}
	c.want(t, "first:1")
	wantState(t, j, journal.Drained)
	steps, err := j.Steps(t.Context(), "run")
	if err != nil || len(steps) != 1 || !steps[0].Recorded {
		t.Errorf("steps %+v, %v; want the one that was running, recorded", steps, err)
	}
	mustRun(t, j.open(), p, journal.Options{})
	c.want(t, "first:1 second:1")
}

func testGrace(t *testing.T, j tested) {
	drain := make(chan struct{})
	p := stone.Func0("long", draft, func(ctx context.Context) (string, error) {
		close(drain)
		<-ctx.Done()
		return "", ctx.Err()
	})
	_, err := run(t, j, p, journal.Options{Drain: drain, Grace: time.Millisecond})
	if !errors.Is(err, journal.ErrDrained) {
		t.Errorf("Run: %v, want ErrDrained", err)
	}
	wantState(t, j, journal.Drained)
}

func testDrainQuestion(t *testing.T, j tested) {
	var c counter
	drain := make(chan struct{})
	cfg := config()
	cfg.Frontend = person(func(ctx context.Context, _ ask.Question) (string, error) {
		close(drain)
		<-ctx.Done()
		return "", ctx.Err()
	})
	_, err := stone.Run(t.Context(), question(&c), kept(cfg, j, journal.Options{Drain: drain}))
	if !errors.Is(err, kind.Waiting) {
		t.Errorf("Run: %v, want that it waits", err)
	}
	wantState(t, j, journal.Waiting)
}

func testCancel(t *testing.T, j tested) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := stone.Run(ctx, stone.Func0("a", draft, func(context.Context) (string, error) { return "x", nil }), kept(config(), j, journal.Options{}))
	if !errors.Is(err, cause) {
		t.Errorf("Run: %v, want that it was cancelled", err)
	}
	if info, err := j.Find(t.Context(), "run"); err == nil && info.State != journal.Canceled {
		t.Errorf("the run is %s, want it canceled or absent", info.State)
	}
}
