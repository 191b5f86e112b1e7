package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/remote"
	"github.com/stonelayer/stone/kind"
)

// A worker that gives the step at a place another input than the dead one before it does not do the step,
// and the run is refused. A body that does not ask for a recorded step any more is noticed.
func TestChangedStep(t *testing.T) {
	for name, changed := range map[string]func(context.Context, func(int) error) error{
		"another input": func(_ context.Context, do func(int) error) error { return do(2) },
		"no step":       func(context.Context, func(int) error) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var j journal.Memory
			var bodies, effects atomic.Int64
			dying, die := context.WithCancel(t.Context())
			p := stone.Seq("p", stone.Func0("leaf", number, func(ctx context.Context) (int, error) {
				do := func(in int) error {
					_, err := stone.Step(ctx, "pay", in, func(context.Context, int) (int64, error) { return effects.Add(1), nil })
					return err
				}
				if bodies.Add(1) > 1 {
					return 1, changed(ctx, do)
				}
				err := do(1)
				die()
				<-ctx.Done()
				return 0, errors.Join(err, ctx.Err())
			}))
			w := &remote.Worker{Journal: &j, Pipelines: []stone.Ashlar{p}}
			carrier := fixed(func(work remote.Work) {
				if err := w.Do(dying, work); !errors.Is(err, context.Canceled) {
					t.Errorf("the first worker ended with %v", err)
				}
				if err := w.Do(t.Context(), work); errors.Is(err, remote.ErrOther) {
					_ = w.GiveBack(t.Context(), work)
				}
			})
			result, err := stone.Run(t.Context(), p, stone.Config{RunID: "run", Recorder: journal.Keep(&j, journal.Options{}),
				Executor: remote.New(remote.Config{Journal: &j, Carrier: carrier, Routes: []remote.Route{{Pool: "p"}}})})
			if effects.Load() != 1 {
				t.Errorf("the step was done %d times", effects.Load())
			}
			if name == "another input" {
				if !errors.Is(err, kind.Replay) || !strings.Contains(err.Error(), "recorded for something else") {
					t.Errorf("the run ended with %v", err)
				}
				return
			}
			if err != nil || len(result.Notices) != 1 || result.Notices[0].Code != event.UnusedRecords || !strings.Contains(result.Notices[0].Text, "p/leaf/pay") {
				t.Errorf("the run ended with %v and the notices %+v", err, result.Notices)
			}
		})
	}
}

// A leaf that is done anew does not get the result that the board of its waiting run has, and neither does
// one within which a step is done anew.
func TestAgain(t *testing.T) {
	for again, want := range map[string]string{"p/leaf": "2 2", "p": "2 2", "p/leaf/pay": "2 1", "p/wait": "1 1"} {
		t.Run(again, func(t *testing.T) {
			var j journal.Memory
			var paid, sent atomic.Int64
			count := func(ctx context.Context, name string, n *atomic.Int64) {
				if _, err := stone.Step(ctx, name, 0, func(context.Context, int) (int64, error) { return n.Add(1), nil }); err != nil {
					t.Error(err)
				}
			}
			waits := true
			p := stone.Seq("p", stone.Func0("leaf", number, func(ctx context.Context) (int, error) {
				count(ctx, "pay", &paid)
				count(ctx, "send", &sent)
				if waits {
					return 0, kindWaiting()
				}
				return 1, nil
			}), stone.Func0("wait", text, func(context.Context) (string, error) { return "", nil }))
			if _, _, err := run(t, t.Context(), &j, p, stone.Config{}, p); !errors.Is(err, kind.Waiting) {
				t.Fatal(err)
			}
			waits = false
			c := newPool(t, &remote.Worker{Journal: &j, Pipelines: []stone.Ashlar{p}})
			if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "run", Recorder: journal.Keep(&j, journal.Options{Again: []string{again}}),
				Executor: remote.New(remote.Config{Journal: &j, Carrier: c, Routes: []remote.Route{{Pool: "p"}}})}); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(paid.Load(), sent.Load()); got != want {
				t.Errorf("the steps were done %s times, want %s", got, want)
			}
		})
	}
}

// A result counts only for the order that it names, and a step only for its leaf: a row that is of
// another one is refused, and nothing of it is used.
func TestForeignRows(t *testing.T) {
	type row = map[string]any
	sum := "0000000000000000000000000000000000000000000000000000000000000000"
	record := row{"type": "number", "content": 7, "sum": sum}
	for name, c := range map[string]struct {
		change func(order, result row)
		want   string
	}{
		"another attempt": {func(_, r row) { r["grant"] = "GRANTED-TO-ANOTHER" }, "not of this order"},
		"another leaf":    {func(_, r row) { r["leaf"] = sum }, "not of this order"},
		"no names":        {func(_, r row) { delete(r, "grant"); delete(r, "leaf") }, "not of this order"},
		"more":            {func(_, r row) { r["grant"] = ""; delete(r, "record"); r["more"] = row{} }, "not of this order"},
		"its own":         {func(_, r row) {}, "changed in transit"}, // so it is read
	} {
		t.Run(name, func(t *testing.T) {
			var j journal.Memory
			p := stone.Seq("p", stone.Func0("leaf", number, func(context.Context) (int, error) { return 1, nil }))
			carrier := fixed(func(w remote.Work) {
				items, err := j.Posted(t.Context(), "run", "order/"+w.ID.String())
				order := row{}
				if err := errors.Join(err, json.Unmarshal(items["order/"+w.ID.String()].Data, &order)); err != nil {
					t.Error(err)
				}
				result := row{"record": record, "grant": order["post"], "leaf": order["key"].(row)["Digest"]}
				c.change(order, result)
				data, _ := json.Marshal(result)
				if _, err := j.Post(t.Context(), "run", journal.Item{Key: "result/" + w.ID.String(), Data: data}); err != nil {
					t.Error(err)
				}
			})
			_, err := stone.Run(t.Context(), p, stone.Config{RunID: "run", Recorder: journal.Keep(&j, journal.Options{}),
				Executor: remote.New(remote.Config{Journal: &j, Carrier: carrier, Routes: []remote.Route{{Pool: "p"}}})})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the run ended with %v, want %q", err, c.want)
			}
		})
	}
	t.Run("step", func(t *testing.T) {
		var j journal.Memory
		var effects atomic.Int64
		p := stone.Seq("p", stone.Func0("leaf", number, func(ctx context.Context) (int, error) {
			return stone.Step(ctx, "pay", 0, func(context.Context, int) (int, error) { return int(effects.Add(1)), nil })
		}), stone.Func0("wait", text, func(context.Context) (string, error) { return "", kindWaiting() }))
		if _, _, err := run(t, t.Context(), &j, p, stone.Config{}, p); !errors.Is(err, kind.Waiting) {
			t.Fatal(err)
		}
		steps, err := j.PostedUnder(t.Context(), "run", "step/")
		if err != nil || len(steps) != 1 {
			t.Fatal(len(steps), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &remote.Worker{Journal: &j, Pipelines: []stone.Ashlar{p}}
		carrier := fixed(func(work remote.Work) {
			defer cancel()
			if _, err := j.Post(ctx, "other", journal.Item{Key: steps[0].Key, Data: steps[0].Data}); err != nil {
				t.Error(err)
			}
			if err := w.Do(ctx, work); err == nil || !strings.Contains(err.Error(), "no step of p/leaf: it is refused") {
				t.Errorf("the worker ended with %v", err)
			}
		})
		if _, err := stone.Run(ctx, p, stone.Config{RunID: "other", Recorder: journal.Keep(&j, journal.Options{}),
			Executor: remote.New(remote.Config{Journal: &j, Carrier: carrier, Routes: []remote.Route{{Pool: "p"}}})}); err == nil {
			t.Error("the run has a result")
		}
		if effects.Load() != 1 {
			t.Errorf("the step was done %d times", effects.Load())
		}
	})
}
