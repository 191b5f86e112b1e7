package journaltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

func testInfo(t *testing.T, j tested) {
	want := journal.RunInfo{
		ID: "run", Pipeline: "żółw", Source: json.RawMessage(`{"args":["-x"]}`), Fingerprint: dag.ID{1}, Revision: "abc+", Reuse: "other",
		Shape: []journal.Part{{Path: "p", Form: "leaf", Reads: []journal.Read{{Query: "q", Type: "t", Nearest: true}}, Print: dag.ID{2}}},
		Input: dag.ID{3}, Begun: moment,
	}
	begin(t, j, want)
	outcome := journal.Outcome{
		State: journal.Failed, Ended: moment.Add(1), Retry: []string{"p", "q"}, Steps: 7,
		Failure: &journal.Failure{Kind: "k", Reason: "r", Path: "p"}, Usage: journal.Usage{InputTokens: 1, OutputTokens: 2, Cost: 0.5},
	}
	finish(t, j, "run", outcome)
	want.Outcome = outcome
	for name, get := range map[string]func() (journal.RunInfo, error){
		"Find":    func() (journal.RunInfo, error) { return j.open().Find(t.Context(), "run") },
		"Acquire": func() (journal.RunInfo, error) { return j.Acquire(t.Context(), "run") },
	} {
		got, err := get()
		must(t, err)
		got.Owner = ""
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(dag.DAG{}), cmpopts.EquateApproxTime(1000)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	want.Pipeline = "another"
	must(t, j.Begin(t.Context(), want))
	info, err := j.Find(t.Context(), "run")
	if err != nil || info.State != journal.Running || info.Pipeline != "another" || info.Failure != nil || len(info.Retry) > 0 {
		t.Errorf("after it goes on: %+v, %v", info, err)
	}
}

func testForget(t *testing.T, j tested) {
	begin(t, j, journal.RunInfo{ID: "run"})
	do(t, j, key("failed"), failure())
	do(t, j, key("rescued"), failure())
	do(t, j, key("good"), value("good"))
	outcome := journal.Outcome{State: journal.Failed, Retry: []string{key("failed").Path, key("good").Path}}
	for _, state := range []journal.State{journal.Canceled, journal.Failed} {
		outcome.State = state
		finish(t, j, "run", outcome)
		begin(t, j, journal.RunInfo{ID: "run"})
		if state == journal.Canceled {
			recorder{t, j}.replay(key("failed"))
		}
	}
	steps, err := j.Steps(t.Context(), "run")
	if err != nil || len(steps) != 3 || steps[0].Recorded || steps[0].Failure != "" || steps[0].PossiblyPaid() != 1 {
		t.Errorf("after it was forgotten: %+v, %v", steps, err)
	}
	recorder{t, j}.replay(key("rescued"))
	recorder{t, j}.replay(key("good"))
	if do(t, j, key("failed"), value("now")).Replayed {
		t.Error("the failure was replayed")
	}
	finish(t, j, "run", journal.Outcome{State: journal.Done})
	other := j.open()
	_, err = other.Acquire(t.Context(), "run")
	must(t, err)
	if got := (recorder{t, other}).replay(key("failed")); string(got.Content) != `"now"` {
		t.Errorf("the second try gave %s", got.Content)
	}
	must(t, other.Release("run"))
}

func testSteps(t *testing.T, j tested) {
	begin(t, j, journal.RunInfo{ID: "run"})
	stop := errors.New("stop")
	for i := range 2 {
		_, err := j.Do(t.Context(), key("first"), func(ctx context.Context) (stone.Record, error) {
			if got := journal.Attempt(ctx); got != i+1 {
				t.Errorf("attempt %d is told that it is attempt %d", i+1, got)
			}
			return stone.Record{}, stop
		})
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		must(t, j.Release("run")) // as when the process ends
	}
	_, err := j.Acquire(t.Context(), "run")
	must(t, err)
	used := value("")
	used.Content = json.RawMessage(`{"reply":{"text":"x","usage":{"input_tokens":7,"output_tokens":3}},"usage":{"cost":0.25,"output_tokens":null}}`)
	_, err = j.Do(journal.WithAttempt(t.Context(), 2), key("second"), func(ctx context.Context) (stone.Record, error) {
		if got := journal.Attempt(ctx); got != 1 {
			t.Errorf("a step that is begun within another one for the first time is told that it is attempt %d", got)
		}
		return used, nil
	})
	must(t, err)
	do(t, j, key("third"), failure())
	if !do(t, j, key("second"), value("other")).Replayed {
		t.Error("the second step was not replayed")
	}
	got, err := j.open().Steps(t.Context(), "run")
	must(t, err)
	step := func(name string) journal.Step {
		k := key(name)
		return journal.Step{Path: k.Path, Kind: k.Kind, Name: k.Name, Attempts: 1, Recorded: true, Time: value("").Time, Sum: value("").Sum}
	}
	want := []journal.Step{step("first"), step("second"), step("third")}
	want[0] = journal.Step{Path: want[0].Path, Kind: "step", Name: "first", Attempts: 2}
	want[1].Usage = journal.Usage{InputTokens: 7, OutputTokens: 3, Cost: 0.25}
	want[2].Failure, want[2].Reason, want[2].Sum = failure().Failure.Kind, failure().Failure.Reason, failure().Sum
	for i, s := range got {
		if s.Begun.IsZero() || s.Recorded == s.Ended.IsZero() {
			t.Errorf("%s was begun at %v and ended at %v, recorded: %t", s.Path, s.Begun, s.Ended, s.Recorded)
		}
		got[i].Begun, got[i].Ended = want[0].Begun, want[0].Ended
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Steps (-want +got):\n%s", diff)
	}
	for i, paid := range []int{2, 0, 0} {
		if n := got[i].PossiblyPaid(); n != paid {
			t.Errorf("%d attempts of %s are possibly paid, want %d", n, got[i].Path, paid)
		}
	}
	rec, err := j.Record(t.Context(), "run", key("second").Path, "step")
	if err != nil || journal.UsageIn(rec.Content) != want[1].Usage || rec.Sum != used.Sum {
		t.Errorf("Record: %s, %v", rec.Content, err)
	}
	for _, name := range []string{"first", "none"} {
		if _, err := j.Record(t.Context(), "run", key(name).Path, "step"); !errors.Is(err, journal.ErrNoStep) {
			t.Errorf("Record(%s): %v, want ErrNoStep", name, err)
		}
	}
}

func testReusePolicy(t *testing.T, j tested) {
	k := key("a")
	k.Reuse = dag.ID{7}
	for i, c := range []struct{ run, reuse, want string }{
		{"one", "", "0"}, {"two", "", "1"}, {"three", "two", "1"}, {"four", journal.AnyRun, "0"}, {"five", "four", "0"}, {"six", "none", "5"},
	} {
		k.Run = c.run
		k.Digest[30]++
		begin(t, j, journal.RunInfo{ID: c.run, Reuse: c.reuse})
		got := do(t, j, k, value(fmt.Sprint(i)))
		if string(got.Content) != fmt.Sprintf("%q", c.want) {
			t.Errorf("run %s, which reuses from %q, has %s, want %q", c.run, c.reuse, got.Content, c.want)
		}
		steps, err := j.Steps(t.Context(), c.run)
		must(t, err)
		switch reused := got.Replayed; {
		case len(steps) != 1:
			t.Errorf("run %s has the steps %+v, want one", c.run, steps)
		case reused != (steps[0].From != "") || reused != (steps[0].Attempts == 0) || !steps[0].Recorded || steps[0].PossiblyPaid() != 0:
			t.Errorf("run %s, reused: %t, has the step %+v", c.run, reused, steps[0])
		}
		finish(t, j, c.run, journal.Outcome{State: journal.Done})
	}
}
