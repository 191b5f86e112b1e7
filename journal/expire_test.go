package journal_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// A question that nobody answers in time has the answer that its step says, or is cancelled; one that is not due waits.
func TestExpire(t *testing.T) {
	approval, said := dag.NewType[stone.Answer]("approval"), dag.NewType[string]("said")
	for _, tt := range []struct {
		name   string
		choice stone.AskOption
		later  time.Duration
		want   string
	}{
		{"by default", stone.Deadline(time.Hour, "no"), 2 * time.Hour, "no"},
		{"cancelled", stone.Deadline(time.Hour, ""), 2 * time.Hour, "declined"},
		{"not due", stone.Deadline(time.Hour, "no"), time.Minute, "waiting"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := memdb.New(t)
			p := stone.Seq("p", stone.Ask("ask", dag.Nothing, approval, func(struct{}) string { return "Publish?" }, stone.Choices("yes", "no"), tt.choice),
				stone.Func("say", approval, said, func(_ context.Context, a stone.Answer) (string, error) { return a.Response, nil }))
			run := func(resume bool) (string, error) {
				res, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(j, journal.Options{Resume: resume})})
				if err != nil {
					return "", err
				}
				text, err := said.Of(res.Node)
				return text, err
			}
			if _, err := run(false); !errors.Is(err, kind.Waiting) {
				t.Fatal(err)
			}
			if err := journal.Expire(t.Context(), j, time.Now().Add(tt.later)); err != nil {
				t.Fatal(err)
			}
			got, err := run(true)
			switch {
			case errors.Is(err, kind.Declined):
				got = "declined"
			case errors.Is(err, kind.Waiting):
				got = "waiting"
			case err != nil:
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	p := stone.Ask("ask", dag.Nothing, approval, func(struct{}) string { return "Publish?" }, stone.Choices("yes", "no"), stone.Deadline(time.Hour, "perhaps"))
	if err := stone.Validate(p, stone.Given{}).Err(); err == nil {
		t.Error("a default that is no choice is valid")
	}
}
