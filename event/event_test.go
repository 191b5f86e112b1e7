package event_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/eventtest"
)

var number = dag.NewType[int]("number")

// chorus streams answers in many lanes, some of which fail.
func chorus(lanes int) stone.Ashlar {
	return stone.Seq("all",
		stone.Func0("count", number, func(context.Context) (int, error) { return lanes, nil }),
		stone.Map("lanes", dag.Derive(number, func(n int) []int { return slices.Repeat([]int{1}, n) }), number,
			stone.Func0("say", dag.NewType[string]("said"), func(ctx context.Context) (string, error) {
				v := event.At(ctx).Speak("m")
				v.Say(event.Text, "a")
				v.Again("cut")
				v.Say(event.Text, "b")
				v.End()
				if strings.Contains(stone.In(ctx).Path(), "7]") {
					return "", errors.New("no luck")
				}
				return "b", nil
			})),
		stone.Reduce(stone.Func0("last", number, func(context.Context) (int, error) { return 1, nil })))
}

// TestStream checks that the stream of a run with many lanes keeps its promises, and that
// every answer of a failed lane is retracted.
func TestStream(t *testing.T) {
	var r eventtest.Recorder
	if _, err := stone.Run(t.Context(), chorus(200), stone.Config{Watch: &r}); err != nil {
		t.Fatal(err)
	}
	if err := eventtest.Check(r.Events()); err != nil {
		t.Error(err)
	}
	void := map[string]int{}
	for _, e := range r.Events() {
		if d, ok := e.Data.(event.Retracted); ok {
			void[d.Reason]++
		}
	}
	if void["cut"] != 200 || void["no luck"] != 20 {
		t.Errorf("retracted %v, want 200 and 20", void)
	}
}

// TestPanic checks that a watcher that panics, in Watch or in Wants, is removed and
// reported, and that the run continues.
func TestPanic(t *testing.T) {
	for _, broken := range []event.Watcher{
		event.Func(event.LevelDelta, func(event.Event) { panic("oops") }),
		wants(func() bool { panic("oops") }),
	} {
		var r eventtest.Recorder
		res, err := stone.Run(t.Context(), chorus(3), stone.Config{Watch: event.All(broken, nil, &r)})
		if err != nil || res.Node == nil {
			t.Fatal(err)
		}
		if err := eventtest.Check(r.Events()); err != nil {
			t.Error(err)
		}
		var told []event.Custom
		for _, e := range r.Events() {
			if d, ok := e.Data.(event.Custom); ok {
				told = append(told, d)
			}
		}
		if len(told) != 1 || told[0].Name != "watcher-panicked" || told[0].At != slog.LevelError || told[0].Attrs[1].Value.String() != "oops" {
			t.Errorf("told %+v", told)
		}
	}
	if _, err := stone.Run(t.Context(), chorus(3), stone.Config{Watch: event.Func(event.LevelDelta, func(event.Event) { panic("alone") })}); err != nil {
		t.Error(err)
	}
}

type wants func() bool

func (w wants) Wants(context.Context, slog.Level) bool { return w() }
func (wants) Watch(context.Context, event.Event)       {}

// TestUnwanted checks that unwanted events allocate nothing.
func TestUnwanted(t *testing.T) {
	for name, w := range map[string]event.Watcher{"none": nil, "no deltas": event.Func(slog.LevelInfo, func(event.Event) {})} {
		leaf := stone.Func0("leaf", number, func(ctx context.Context) (int, error) {
			if n := testing.AllocsPerRun(100, func() {
				at := event.At(ctx)
				v := at.Speak("m")
				v.Say(event.Text, "a")
				v.Again("cut")
				v.End()
				at.Retract("void")
			}); n != 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
			return 1, nil
		})
		if _, err := stone.Run(t.Context(), leaf, stone.Config{Watch: w}); err != nil {
			t.Fatal(err)
		}
	}
	if event.At(t.Context()).Wants(slog.LevelError) || (event.Place{}).Wants(slog.LevelError) || event.All() != nil || event.All(nil, nil) != nil {
		t.Error("a watcher listens")
	}
}

// TestLeftBehind checks that an abandoned attempt sends no events.
func TestLeftBehind(t *testing.T) {
	var r eventtest.Recorder
	var gone sync.WaitGroup
	gone.Add(1)
	over := make(chan struct{})
	leaf := stone.Func0("leaf", number, func(ctx context.Context) (int, error) {
		defer gone.Done()
		v := event.At(ctx).Speak("m")
		v.Say(event.Text, "in time")
		<-over
		v.Say(event.Text, "late")
		return 1, nil
	}, stone.Timeout(10*time.Millisecond))
	if _, err := stone.Run(t.Context(), leaf, stone.Config{Watch: &r}); err == nil {
		t.Fatal("no timeout")
	}
	close(over)
	gone.Wait()
	if err := eventtest.Check(r.Events()); err != nil {
		t.Error(err)
	}
	for _, e := range r.Events() {
		if d, ok := e.Data.(event.Delta); ok && d.Text == "late" {
			t.Error("its event arrived")
		}
	}
}

// TestOvertaken checks that a step of a Flow retracts its answer when an earlier step
// fails.
func TestOvertaken(t *testing.T) {
	var r eventtest.Recorder
	spoken := make(chan struct{})
	p := stone.Flow("f",
		stone.Func0("a", number, func(context.Context) (int, error) { <-spoken; return 0, errors.New("boom") }),
		stone.Func0("b", dag.NewType[string]("text"), func(ctx context.Context) (string, error) {
			event.At(ctx).Speak("m").Say(event.Text, "hello")
			close(spoken)
			<-ctx.Done()
			return "", ctx.Err()
		}))
	if _, err := stone.Run(t.Context(), p, stone.Config{Watch: &r}); err == nil {
		t.Fatal("it did not fail")
	}
	if err := eventtest.Check(r.Events()); err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(r.Events(), func(e event.Event) bool { _, ok := e.Data.(event.Retracted); return ok && e.Path == "f/b" }) {
		t.Error("nothing was retracted")
	}
}

// TestLogOfEverything checks that each type of data has a record, or is known to have
// none.
func TestLogOfEverything(t *testing.T) {
	var b bytes.Buffer
	log := event.Log(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	all := eventtest.All()
	for _, d := range all {
		log.Watch(t.Context(), event.Event{Run: "r", Span: "s", Path: "p", Name: "n", Data: d})
	}
	for _, d := range all {
		e := event.Event{Data: d}
		got := strings.Contains(b.String(), "msg="+e.Type()+" trace-id=r span-id=s parent-span-id=\"\"")
		if silent := slices.Contains([]string{"delta", "retracted", "tool-start"}, e.Type()); got == silent {
			t.Errorf("%s: logged %v", e.Type(), got)
		}
	}
}
