package journal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// TestSession checks that a standing answer applies to the later runs of its session only.
func TestSession(t *testing.T) {
	answered := dag.NewType[string]("answered")
	p := stone.Func0("asks", answered, func(ctx context.Context) (string, error) {
		return stone.In(ctx).Ask(ask.Question{Name: "may I", Text: "May I?", Choices: []string{"yes", "always", "never"}, Standing: []string{"always", "never"}})
	})
	j := memdb.New(t)
	run := func(id, label, value string) (string, error) {
		cfg := stone.Config{RunID: id, Recorder: journal.Keep(j, journal.Options{Session: []string{"chat"}, Labels: map[string]string{label: value}})}
		result, err := stone.Run(t.Context(), p, cfg)
		if err != nil {
			return "", err
		}
		return answered.Of(result.Node)
	}
	waits := func(id, label, value string) {
		t.Helper()
		if got, err := run(id, label, value); !errors.Is(err, kind.Waiting) {
			t.Fatalf("%s: %q, %v", id, got, err)
		}
	}
	answer := func(id, response, label, value string) {
		t.Helper()
		if err := journal.Answer(t.Context(), j, id, "may I", ask.Answer{Response: response}); err != nil {
			t.Fatal(err)
		}
		if got, err := run(id, label, value); got != response || err != nil {
			t.Fatalf("%s: %q, %v", id, got, err)
		}
	}
	waits("a-1", "chat", "a")
	for q, err := range j.EachQuestion(t.Context(), journal.QuestionQuery{Run: "a-1"}) {
		if len(q.Standing) != 2 || err != nil { // who shows the question can tell what lasts
			t.Errorf("%+v, %v", q, err)
		}
	}
	answer("a-1", "yes", "chat", "a")
	waits("a-2", "chat", "a") // yes answers one question
	answer("a-2", "never", "chat", "a")
	for i := range journal.DefaultLimit + 1 { // more than a page
		if got, err := run(fmt.Sprint("a-", i+3), "chat", "a"); got != "never" || err != nil {
			t.Fatalf("run %d: %q, %v", i+3, got, err)
		}
	}
	waits("b-1", "chat", "b")
	waits("c-1", "other", "a")
	answer("b-1", "always", "chat", "b")
	if got, err := run("b-2", "chat", "b"); got != "always" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
