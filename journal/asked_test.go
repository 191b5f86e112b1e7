package journal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
)

// A run that asks too many questions at the same time asks no more: the step fails, and says so.
func TestTooManyQuestions(t *testing.T) {
	text, answer := dag.NewType[string]("text"), dag.NewType[stone.Answer]("answer")
	var asks []stone.FanPart
	for i := range 256 { // they are counted once
		asks = append(asks, stone.Ask(fmt.Sprint("a", i), text, answer, func(s string) string { return s }))
	}
	sum := stone.Reduce(stone.Func("sum", dag.Lanes(answer), dag.NewType[int]("sum"), func(_ context.Context, all []stone.Answer) (int, error) { return len(all), nil }))
	for earlier, want := range map[int]int{10: 266, bounds.Asked: bounds.Asked + 255} {
		j := memdb.New(t)
		for i := range earlier {
			if _, err := j.Ask(t.Context(), journal.Question{Run: "run", Path: fmt.Sprint("earlier", i), Asked: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = stone.Run(t.Context(), stone.Seq("run", stone.Parallel("all", asks...), sum), stone.Config{RunID: "run", Input: dag.Of(text.With("x")), Recorder: journal.Keep(j, journal.Options{})})
		if n, err := j.CountQuestions(t.Context(), journal.QuestionQuery{Run: "run", Open: true}); n != want || err != nil {
			t.Errorf("%d open questions, %v; want %d", n, err, want)
		}
		steps, err := j.Steps(t.Context(), "run")
		if failed := slices.ContainsFunc(steps, func(s journal.Step) bool { return strings.Contains(s.Reason, "open questions: want fewer than 10000") }); err != nil || failed != (want > bounds.Asked) {
			t.Errorf("after %d questions, a step fails: %v, %v", earlier, failed, err)
		}
	}
}

// A list that continues after a question that is gone ends, instead of starting over.
func TestQuestionsAfter(t *testing.T) {
	j := memdb.New(t)
	for _, run := range []string{"a", "b"} {
		for _, path := range []string{"p", "q"} {
			if _, err := j.Ask(t.Context(), journal.Question{Run: run, Path: path, Name: path, Asked: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, row := range []struct {
		run   string
		after journal.Question
		want  string
	}{
		{"", journal.Question{Run: "a", Path: "p"}, "aq bp bq "},
		{"", journal.Question{Run: "b", Path: "p"}, "bq "},
		{"", journal.Question{Run: "gone", Path: "p"}, ""},
		{"a", journal.Question{Run: "a", Path: "p"}, "aq "},
		{"a", journal.Question{Run: "a", Path: "gone"}, ""},
	} {
		got := ""
		for q, err := range j.EachQuestion(t.Context(), journal.QuestionQuery{Run: row.run, After: &row.after}) {
			if err != nil {
				t.Fatal(err)
			}
			got += q.Run + q.Path + " "
		}
		if got != row.want {
			t.Errorf("of run %q after %s/%s: %q, want %q", row.run, row.after.Run, row.after.Path, got, row.want)
		}
	}
}
