package journaltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/transport"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// parked is the error of a request that is waiting for a batch.
type parked struct{ sent bool }

func (parked) Error() string        { return "parked" }
func (parked) Is(target error) bool { return target == kind.Waiting }
func (p parked) Sent() bool         { return p.sent }

// testSharedBatched checks that a request that is waiting for a batch is in flight until its answer is recorded, its run ends, or
// its batches are recorded. Each line describes the visits to a run: attempts of its only step, and the end of each visit. Each
// word is followed by the amounts that the budget has then used and has in flight.
func testSharedBatched(t *testing.T, j tested) {
	for n, line := range []string{
		"asked 0 1, failed 0 0",
		"asked 0 1, waiting 0 1, asked 0 1, failed 0 0",                // the provider refused the batch
		"asked 0 1, drained 0 0, asked 0 1, failed 0 0",                // the batch was not created
		"asked 0 1, waiting 0 1, sent 0 1, answer 0.25 0, done 0.25 0", // the usual course
		"asked 0 1, waiting 0 1, answer 0.25 0, failed 0.25 0",
		"asked 0 1, waiting 0 1, sent 0 1, asked 0 1, failed 0 0", // the batch expired
		"asked 0 1, waiting 0 1, lost 0 1, asked 0 2, waiting 0 1, answer 0.25 0, done 0.25 0",
		"asked 0 1, waiting 0 1, error 0.5 0, asked 0.5 1, failed 0.5 0",
		"asked 0 1, waiting 0 1, direct 0.25 0, done 0.25 0",
		"asked 0 1, drained 0 0, direct 0.25 0, done 0.25 0",
		"partly 0.125 1, waiting 0.125 1, answer 0.375 0, done 0.375 0", // another request had been sent before
		"partly 0.125 1, failed 0.125 0",
		"asked 0 1, waiting 0 1, partly-sent 0.125 1, answer 0.375 0, done 0.375 0",
	} {
		b := budget.Shared{Name: fmt.Sprint("batched-", n), Limits: budget.Limits{USD: new(1.0)}}
		info := journal.RunInfo{ID: fmt.Sprint("batched-", n), Budgets: []budget.Shared{b}}
		key := step.Key{RunID: info.ID, Path: info.ID + "/ask", Kind: "step", Name: "ask", Digest: [32]byte{1}}
		begun := false
		for word := range strings.SplitSeq(line, ", ") {
			var what string
			var used, held float64
			if _, err := fmt.Sscan(word, &what, &used, &held); err != nil {
				t.Fatal(err)
			}
			if !begun {
				begin(t, j, info)
				begun = true
			}
			result, failed := step.Record{}, map[string]error{
				"asked": budget.Costly(parked{false}, budget.Usage{}), "sent": budget.Costly(parked{true}, budget.Usage{}),
				"partly": budget.Costly(parked{false}, budget.Usage{USD: 0.125}), "partly-sent": budget.Costly(parked{true}, budget.Usage{USD: 0.125}),
				"error": budget.Costly(errors.New("unreadable"), budget.Usage{USD: 0.5}), "lost": errors.New("lost"),
			}[what]
			ctx := declared.Claim(declared.With(t.Context(), dollar), budget.Fixed(dollar))
			if what != "direct" {
				ctx = transport.WithBatches(ctx)
			}
			switch what {
			case "failed", "waiting", "drained", "done":
				finish(t, j, info.ID, journal.Outcome{State: journal.State(what)})
				begun = false
			case "answer", "direct":
				result = step.Record{Content: []byte(`{"usage":{"usd":0.25}}`), Time: time.Now()}
				fallthrough
			default:
				_, err := j.Do(ctx, key, func(context.Context) (step.Record, error) { return result, failed })
				if failed == nil && err != nil || failed != nil && !errors.Is(err, failed) {
					t.Fatalf("%s: %s: %v", line, what, err)
				}
			}
			if got, err := j.Balance(t.Context(), b, time.Now()); err != nil || got.Used.USD != used || got.Held.USD != held {
				t.Errorf("%s: after %q the budget has used %v and in flight %v, %v", line, what, got.Used.USD, got.Held.USD, err)
			}
		}
	}
}
