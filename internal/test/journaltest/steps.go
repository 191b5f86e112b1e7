package journaltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

func testInfo(t *testing.T, j tested) {
	want := journal.RunInfo{
		ID: "run", Pipeline: "żółw", Source: json.RawMessage(`{"args":["-x"]}`), Fingerprint: dag.ID{1}, Revision: "abc+", Reuse: "other", Labels: map[string]string{"k": "v"},
		Shape: []journal.Part{{Path: "p", Form: "leaf", Reads: []journal.Read{{Query: "q", Type: "t", Nearest: true}}, Print: dag.ID{2}}},
		Input: dag.ID{3}, Started: moment,
	}
	begin(t, j, want)
	outcome := journal.Outcome{
		State: journal.Failed, Ended: moment.Add(1), Retry: []string{"p", "q"}, Steps: 7,
		Failure: &journal.Failure{Kind: "k", Reason: "r", Path: "p"}, Usage: budget.Total{Usage: budget.Usage{InputTokens: 1, OutputTokens: 2, USD: 0.5}},
		Lanes: dag.Losses{Lost: 2, Lanes: 3},
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
	must(t, j.Begin(t.Context(), want, dag.DAG{}))
	info, err := j.Find(t.Context(), "run")
	if err != nil || info.State != journal.Running || info.Pipeline != "another" || info.Failure != nil || len(info.Retry) > 0 {
		t.Errorf("after it continues: %+v, %v", info, err)
	}
}

func testForget(t *testing.T, j tested) {
	begin(t, j, journal.RunInfo{ID: "run"})
	price := budget.Amount{Roundtrips: 1, USD: 1}
	paying := declared.With(t.Context(), price)
	costly := failure()
	costly.Meta = map[string]string{terms.UsageNote: budget.Usage{InputTokens: 7, USD: 0.5}.Meta()}
	_, err := j.Do(paying, key("failed"), func(context.Context) (step.Record, error) { return costly, nil })
	must(t, err)
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
	if err != nil || len(steps) != 3 || steps[0].Recorded || steps[0].Failure != "" || steps[0].PossiblyPaid() != 0 {
		t.Errorf("after it was forgotten: %+v, %v", steps, err)
	}
	if got, want := steps[0].Spent(), (budget.Amount{Roundtrips: 1, Tokens: 7, USD: 0.5}); got != want || steps[0].Failures != 1 {
		t.Errorf("the failure that was forgotten has cost %+v, %d times; want %+v, once", got, steps[0].Failures, want)
	}
	recorder{t, j}.replay(key("rescued"))
	recorder{t, j}.replay(key("good"))
	now, err := j.Do(paying, key("failed"), func(context.Context) (step.Record, error) {
		used := value("now")
		used.Content = json.RawMessage(`{"usage":{"usd":0.25}}`)
		return used, nil
	})
	if err != nil || now.Replayed {
		t.Errorf("the failure was replayed, or %v", err)
	}
	finish(t, j, "run", journal.Outcome{State: journal.Done})
	other := j.open()
	_, err = other.Acquire(t.Context(), "run")
	must(t, err)
	if got := (recorder{t, other}).replay(key("failed")); string(got.Content) != `{"usage":{"usd":0.25}}` {
		t.Errorf("the second try gave %s", got.Content)
	}
	steps, err = other.Steps(t.Context(), "run")
	must(t, err)
	if got, want := steps[0].Spent(), (budget.Amount{Roundtrips: 2, Tokens: 7, USD: 0.75}); got != want {
		t.Errorf("both attempts have cost %+v, want %+v", got, want)
	}
	must(t, other.Release("run"))
}

func testSteps(t *testing.T, j tested) {
	begin(t, j, journal.RunInfo{ID: "run"})
	stop := errors.New("stop")
	for i := range 2 {
		_, err := j.Do(t.Context(), key("first"), func(ctx context.Context) (step.Record, error) {
			if got := journal.Attempt(ctx); got != i+1 {
				t.Errorf("attempt %d is told that it is attempt %d", i+1, got)
			}
			return step.Record{}, stop
		})
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		must(t, j.Release("run")) // as if the process had ended
	}
	_, err := j.Acquire(t.Context(), "run")
	must(t, err)
	used := value("")
	used.Content = json.RawMessage(`{"reply":{"text":"x","usage":{"input_tokens":7,"output_tokens":3}},"usage":{"input-tokens":7,"output-tokens":3,"usd":0.25}}`)
	price := budget.Amount{Roundtrips: 1, USD: 0.5}
	paying := declared.With(record.WithAttempt(t.Context(), 2), price)
	_, err = j.Do(paying, key("second"), func(ctx context.Context) (step.Record, error) {
		if got := record.Declared(ctx); got != (budget.Amount{}) {
			t.Errorf("the inner step has the declared cost %+v", got)
		}
		if got := journal.Attempt(ctx); got != 1 {
			t.Errorf("a step that is started within another one for the first time is told that it is attempt %d", got)
		}
		return used, nil
	})
	must(t, err)
	do(t, j, key("third"), failure())
	free := value("")
	free.Content = used.Content
	do(t, j, key("fourth"), free)
	costly := failure()
	costly.Meta = map[string]string{terms.UsageNote: budget.Usage{InputTokens: 3, OutputTokens: 2, USD: 0.125}.Meta()}
	_, err = j.Do(paying, key("fifth"), func(context.Context) (step.Record, error) { return costly, nil })
	must(t, err)
	if !do(t, j, key("second"), value("other")).Replayed {
		t.Error("the second step was not replayed")
	}
	got, err := j.open().Steps(t.Context(), "run")
	must(t, err)
	step := func(name string) journal.Step {
		k := key(name)
		return journal.Step{Path: k.Path, Kind: k.Kind, Name: k.Name, Attempts: 1, Recorded: true, Time: value("").Time, Sum: value("").Sum}
	}
	want := []journal.Step{step("first"), step("second"), step("third"), step("fourth"), step("fifth")}
	want[0] = journal.Step{Path: want[0].Path, Kind: "step", Name: "first", Attempts: 2}
	want[1].Usage = budget.Usage{InputTokens: 7, OutputTokens: 3, USD: 0.25}
	for _, i := range []int{2, 4} {
		want[i].Failure, want[i].Reason, want[i].Sum = string(failure().Failure.Kind), failure().Failure.Reason, failure().Sum
	}
	want[1].Declared, want[4].Declared, want[4].Usage = price, price, budget.Usage{InputTokens: 3, OutputTokens: 2, USD: 0.125}
	for i, s := range got {
		if s.Started.IsZero() || s.Recorded == s.Ended.IsZero() {
			t.Errorf("%s was started at %v and ended at %v, recorded: %t", s.Path, s.Started, s.Ended, s.Recorded)
		}
		got[i].Started, got[i].Ended = want[0].Started, want[0].Ended
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Steps (-want +got):\n%s", diff)
	}
	for i, paid := range []int{2, 0, 0, 0, 0} {
		if n := got[i].PossiblyPaid(); n != paid {
			t.Errorf("%d attempts of %s are possibly paid, want %d", n, got[i].Path, paid)
		}
	}
	rec, err := j.Record(t.Context(), "run", key("second").Path, "step")
	if err != nil || record.Usage(rec) != want[1].Usage || rec.Sum != used.Sum {
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
		k.RunID = c.run
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
