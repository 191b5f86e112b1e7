package journaltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

func testQuery(t *testing.T, j tested) {
	outcomes := map[string]journal.Outcome{
		"cheap":  {State: journal.Done, Ended: moment.Add(9 * time.Hour), Usage: budget.Total{Usage: budget.Usage{USD: 0.1}}},
		"dear":   {State: journal.Done, Ended: moment.Add(8 * time.Hour), Usage: budget.Total{Usage: budget.Usage{USD: 3}}},
		"failed": {State: journal.Failed, Ended: moment.Add(3 * time.Hour), Failure: &journal.Failure{Kind: "timeout", Path: "all/fetch", Reason: "the Server took too long"}},
	}
	for i, id := range []string{"cheap", "dear", "failed"} {
		begin(t, j, journal.RunInfo{ID: id, Pipeline: "p-" + id, Started: moment.Add(time.Duration(i) * time.Hour),
			Labels: map[string]string{"team": "a", "name": id}})
		finish(t, j, id, outcomes[id])
	}
	for _, c := range []struct {
		query journal.Query
		want  string
	}{
		{journal.Query{Pipeline: "p-dear"}, "[dear]"},
		{journal.Query{Labels: map[string]string{"team": "a"}}, "[failed dear cheap]"},
		{journal.Query{Labels: map[string]string{"team": "a", "name": "cheap"}}, "[cheap]"},
		{journal.Query{Labels: map[string]string{"none": ""}}, "[]"},
		{journal.Query{Text: "SERVER took"}, "[failed]"},
		{journal.Query{Text: "all/fetch"}, "[failed]"},
		{journal.Query{Text: "nothing"}, "[]"},
		{journal.Query{MinCost: 0.1}, "[dear cheap]"},
		{journal.Query{MinCost: 1}, "[dear]"},
		{journal.Query{Since: moment.Add(time.Hour)}, "[failed dear]"},
		{journal.Query{Until: moment.Add(time.Hour)}, "[cheap]"},
		{journal.Query{Ended: moment.Add(8 * time.Hour)}, "[dear cheap]"},
		{journal.Query{Ended: moment.Add(10 * time.Hour)}, "[]"},
		{journal.Query{Since: moment, Until: moment.Add(2 * time.Hour), Limit: 1}, "[dear]"},
	} {
		runs, err := j.open().Runs(t.Context(), c.query)
		must(t, err)
		ids := []string{}
		for _, r := range runs {
			ids = append(ids, r.ID)
		}
		if got := fmt.Sprint(ids); got != c.want {
			t.Errorf("Runs(%+v) = %s, want %s", c.query, got, c.want)
		}
	}
}

// testResumable checks that Resumable returns runs that were drained, whose process died, or whose questions have been answered.
func testResumable(t *testing.T, j tested) {
	for _, id := range []string{"drained", "failed", "canceled", "waiting", "answered", "done"} {
		begin(t, j, journal.RunInfo{ID: id})
		state := journal.State(id)
		if id == "answered" || id == "waiting" {
			state = journal.Waiting
			for _, path := range []string{"p/a", "p/b"} {
				_, err := j.Ask(t.Context(), journal.Question{Run: id, Path: path, Name: path, Asked: moment})
				must(t, err)
			}
			must(t, j.Answer(t.Context(), id, "p/a", ask.Answer{Response: "yes"}))
		}
		finish(t, j, id, journal.Outcome{State: state})
	}
	must(t, j.Answer(t.Context(), "answered", "p/b", ask.Answer{})) // a canceled question counts as answered
	begin(t, j, journal.RunInfo{ID: "interrupted"})
	must(t, j.Release("interrupted"))
	begin(t, j, journal.RunInfo{ID: "running"})

	other := j.open()
	runs, err := journal.Resumable(t.Context(), other)
	must(t, err)
	var ids []string
	for _, r := range runs {
		if ids = append(ids, r.ID); string(r.State) != r.ID {
			t.Errorf("run %s is %s", r.ID, r.State)
		}
	}
	if got := fmt.Sprint(ids); got != "[drained answered interrupted]" {
		t.Errorf("resumable: %s, want [drained answered interrupted]", got)
	}
	if info, err := other.Find(t.Context(), "answered"); err != nil || info.State != journal.Answered {
		t.Errorf("Find: %s, %v; want it answered", info.State, err)
	}
	open, err := openQuestions(t.Context(), other)
	if err != nil || len(open) != 1 || open[0].Run != "waiting" || open[0].Path != "p/b" {
		t.Errorf("open questions: %+v, %v; want p/b of waiting", open, err)
	}
	for name, q := range map[string]journal.Query{
		"all": {}, "state": {States: []journal.State{journal.Waiting, journal.Canceled}}, "one state": {States: []journal.State{journal.Waiting}},
		"times": {Until: moment.Add(1000 * time.Hour)},
	} {
		q.Asking = true
		runs, err := other.Runs(t.Context(), q)
		if err != nil || len(runs) != 1 || runs[0].ID != "waiting" {
			t.Errorf("asking, %s: %d runs, %v; want the one that waits", name, len(runs), err)
		}
	}
	q := journal.Query{Asking: true, Labels: map[string]string{"no": "such"}, Pipeline: "none"}
	if runs, err := other.Runs(t.Context(), q); err != nil || len(runs) > 0 {
		t.Errorf("asking, with a label that none has: %d runs, %v", len(runs), err)
	}
	must(t, j.Release("running"))
}

// testBounds checks that data that callers store with a run is limited in size, because lists repeat it. Data that is too large is
// refused without leaving anything behind.
func testBounds(t *testing.T, j tested) {
	labels := func(n, name, value int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprintf("%0*d", name, i)] = strings.Repeat("v", value)
		}
		return all
	}
	start := func(id, pipeline string, labels map[string]string) error {
		if _, err := j.Acquire(t.Context(), id); err != nil {
			return err
		}
		err := j.Begin(t.Context(), journal.RunInfo{ID: id, Pipeline: pipeline, Labels: labels, Started: moment}, dag.DAG{})
		must(t, j.Release(id))
		return err
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	must(t, start(long(512), long(512), labels(20, 64, 512)))
	for name, err := range map[string]error{
		"21 labels":     start("a", "p", labels(21, 2, 1)),
		"65 bytes":      start("b", "p", labels(1, 65, 1)),
		"513 bytes":     start("c", "p", labels(1, 2, 513)),
		"has 513 bytes": start("d", long(513), nil),
		"id":            start(long(513), "p", nil),
	} {
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "want at most") {
			t.Errorf("%s: %.200v, want an error with the size and the limit", name, err)
		}
	}
	asked := journal.Question{Run: "e", Path: "p/a", Name: "a", Text: long(1 << 20), Asked: moment}
	if _, err := j.Ask(t.Context(), asked); err == nil || !strings.Contains(err.Error(), "want at most 1048576") {
		t.Errorf("a question of 1 MiB and more: %.200v", err)
	}
	runs, err := j.open().Runs(t.Context(), journal.Query{})
	must(t, err)
	if len(runs) != 1 || len(runs[0].ID) != 512 {
		t.Errorf("%d runs, want only the one that was not refused", len(runs))
	}
	asked.Text = "why?"
	_, err = j.Ask(t.Context(), asked)
	must(t, err)
	if err := j.Answer(t.Context(), "e", "p/a", ask.Answer{Response: long(1<<20 + 1)}); err == nil || !strings.Contains(err.Error(), "has 1048577 bytes: want at most 1048576") {
		t.Errorf("a response of more than 1 MiB: %.200v", err)
	}
	must(t, j.Answer(t.Context(), "e", "p/a", ask.Answer{Response: long(1 << 20)}))
}

// testOpenQuestions creates more than a page of runs with questions, and answers every second question.
func testOpenQuestions(t *testing.T, j tested) {
	var want []string
	for i := range journal.DefaultLimit + 3 {
		id := fmt.Sprint("run-", i)
		for _, path := range []string{"p/b", "p/a", "p/c"} {
			_, err := j.Ask(t.Context(), journal.Question{Run: id, Path: path, Text: "why?", Asked: moment})
			must(t, err)
		}
		must(t, j.Answer(t.Context(), id, "p/a", ask.Answer{Response: "x", Given: moment}))
		want = append(want, id+"/p/b", id+"/p/c")
	}
	open, err := openQuestions(t.Context(), j.open())
	must(t, err)
	var got []string
	for _, q := range open {
		got = append(got, q.Run+"/"+q.Path)
	}
	if !slices.Equal(got, want) {
		t.Errorf("open questions: %v, want %v", got, want)
	}
	labels := map[string]string{"team": strings.Repeat("a", 120) + "b"}
	begin(t, j.Journal, journal.RunInfo{ID: "labelled", Started: moment, Labels: labels})
	_, err = j.Ask(t.Context(), journal.Question{Run: "labelled", Path: "p/due", Text: "why?", Asked: moment, Due: moment.Add(time.Hour), Default: "no"})
	must(t, err)
	if n, err := j.open().CountQuestions(t.Context(), journal.QuestionQuery{Labels: labels, Open: true}); err != nil || n != 1 {
		t.Errorf("%d questions with the label are counted, %v; want 1", n, err)
	}
	begin(t, j.Journal, journal.RunInfo{ID: "over", Started: moment})
	_, err = j.Ask(t.Context(), journal.Question{Run: "over", Path: "p/over", Text: "why?", Asked: moment})
	must(t, err)
	finish(t, j.Journal, "over", journal.Outcome{State: journal.Done})
	for _, c := range []struct {
		q    journal.QuestionQuery
		want string
	}{
		{journal.QuestionQuery{Run: "run-1"}, "run-1/p/b run-1/p/a run-1/p/c"},
		{journal.QuestionQuery{Run: "run-1", Open: true}, "run-1/p/b run-1/p/c"},
		{journal.QuestionQuery{Run: "run-1", Path: "p/a"}, "run-1/p/a"},
		{journal.QuestionQuery{Run: "run-1", Open: true, Path: "p/a"}, ""},
		{journal.QuestionQuery{Run: "run-1", After: &journal.Question{Run: "run-1", Path: "p/b"}}, "run-1/p/a run-1/p/c"},
		{journal.QuestionQuery{Open: true, After: &journal.Question{Run: "run-101", Path: "p/a"}}, "run-101/p/c run-102/p/b run-102/p/c labelled/p/due"},
		{journal.QuestionQuery{Labels: labels, Open: true}, "labelled/p/due"},
		{journal.QuestionQuery{Labels: map[string]string{"team": strings.Repeat("a", 120) + "c"}}, ""},
		{journal.QuestionQuery{Due: moment}, ""},
		{journal.QuestionQuery{Due: moment.Add(time.Hour)}, "labelled/p/due"},
		{journal.QuestionQuery{Run: "over"}, "over/p/over"},
		{journal.QuestionQuery{Run: "no such run"}, ""},
	} {
		var got []string
		for q, err := range j.open().EachQuestion(t.Context(), c.q) {
			must(t, err)
			got = append(got, q.Run+"/"+q.Path)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v, want %s", c.q, got, c.want)
		}
		if n, err := j.open().CountQuestions(t.Context(), c.q); c.q.After == nil && c.q.Due.IsZero() && len(c.q.Labels) == 0 && (err != nil || n != len(got)) {
			t.Errorf("%+v: %d counted, %v; want %d", c.q, n, err, len(got))
		}
	}
}

// openQuestions returns the open questions of all runs.
func openQuestions(ctx context.Context, j journal.Journal) (open []journal.Question, err error) {
	for q, err := range j.EachQuestion(ctx, journal.QuestionQuery{Open: true}) {
		if err != nil {
			return nil, err
		}
		open = append(open, q)
	}
	return open, nil
}
