package journaltest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/journal"
)

// beside returns a journal as an owed.Store, which it also implements.
func beside(j journal.Journal) owed.Store {
	if t, ok := j.(tested); ok {
		j = t.Journal
	}
	return j.(owed.Store)
}

// testBatches checks that the holder of a run can record batches, that other processes can read them, and that they are removed
// with the run.
func testBatches(t *testing.T, j tested) {
	b := owed.Batch{Number: 1, Name: "one", Provider: "p", URL: "u", Noted: moment, State: owed.Making, Keys: []string{"a", "b"}, Estimate: budget.Amount{USD: 2}}
	if err := beside(j).PutBatch(t.Context(), "r", b); err == nil {
		t.Error("a batch of a run that nobody holds was noted")
	}
	begin(t, j, journal.RunInfo{ID: "r"})
	must(t, beside(j).PutBatch(t.Context(), "r", b))
	for n := range 11 {
		must(t, beside(j).PutBatch(t.Context(), "r", owed.Batch{Number: n + 2, Name: fmt.Sprint(n + 2), State: owed.Made}))
	}
	b.State, b.ID, b.Keys, b.Lost, b.Estimate = owed.Ended, "id", []string{"a"}, []string{"b"}, budget.Amount{}
	must(t, beside(j).PutBatch(t.Context(), "r", b))
	finish(t, j, "r", journal.Outcome{State: journal.Waiting, Ended: moment})
	all, err := beside(j.open()).Batches(t.Context(), "r")
	must(t, err)
	if len(all) != 12 || fmt.Sprintf("%+v", all[0]) != fmt.Sprintf("%+v", b) || all[11].Number != 12 {
		t.Errorf("got %+v", all)
	}
	must(t, j.Remove(t.Context(), "r"))
	begin(t, j, journal.RunInfo{ID: "r"})
	if all, err := beside(j).Batches(t.Context(), "r"); err != nil || len(all) > 0 {
		t.Errorf("another run of the name has %+v, %v", all, err)
	}
	finish(t, j, "r", journal.Outcome{State: journal.Done, Ended: moment})
}

// due returns the notices that are due, and the same as text, in the form "receiver event".
func due(t *testing.T, j journal.Journal, at time.Time, but ...string) (all []owed.Notice, text string) {
	t.Helper()
	all, err := beside(j).Due(t.Context(), at, but, 100)
	must(t, err)
	for _, n := range all {
		text += fmt.Sprintf("%s %s %s;", n.Run, n.Receiver, n.Type())
	}
	return all, text
}

// testNotices checks that the end of a run adds one notice for each webhook named at the start and for each receiver of the run.
func testNotices(t *testing.T, j tested) {
	begin(t, j, journal.RunInfo{ID: "quiet"})
	finish(t, j, "quiet", journal.Outcome{State: journal.Done, Ended: moment})
	begin(t, j, journal.RunInfo{ID: "r", Notify: []string{"ops"}})
	_, err := j.Ask(t.Context(), journal.Question{Run: "r", Path: "p", Name: "p", Asked: moment})
	must(t, err)
	finish(t, j, "r", journal.Outcome{State: journal.Waiting, Ended: time.Now().Add(-time.Minute)})
	other := j.open() // another process ends the run
	must(t, other.Answer(t.Context(), "r", "p", ask.Answer{Response: "yes"}))
	must(t, journal.Cancel(t.Context(), other, "r"))
	all, text := due(t, other, time.Now())
	if text != "r ops question.asked;r ops run.canceled;" {
		t.Fatalf("owed: %s", text)
	}
	if all[0].Event != owed.Asked("p", "", moment) {
		t.Errorf("the event is %s", all[0].Event)
	}

	// Only one of several servers makes an attempt, with the body of the first attempt.
	n := all[0]
	n.Tries, n.Next, n.Body = 1, time.Now().Add(time.Minute), []byte("body")
	for i, at := range []journal.Journal{j.Journal, other} {
		mine, err := beside(at).PutNotice(t.Context(), n, 0)
		if must(t, err); mine != (i == 0) {
			t.Errorf("server %d may send: %t", i, mine)
		}
	}
	if _, text := due(t, other, time.Now()); text != "r ops run.canceled;" {
		t.Errorf("owed while it is sent: %s", text)
	}
	if again, _ := due(t, other, time.Now().Add(2*time.Minute)); len(again) != 2 || string(again[1].Body) != "body" || again[1].Tries != 1 {
		t.Errorf("later: %+v", again)
	}
	if _, text := due(t, other, time.Now().Add(-24*time.Hour)); text != "r ops run.canceled;r ops question.asked;" && text != "r ops question.asked;r ops run.canceled;" {
		t.Errorf("owed by a clock that was set back: %s", text)
	}
	if _, text := due(t, other, time.Now(), "ops"); text != "" {
		t.Errorf("owed without ops: %s", text)
	}
	n.Next, n.Body = time.Time{}, nil
	for range 2 { // once a notice is settled, it stays settled
		mine, err := beside(j).PutNotice(t.Context(), n, 1)
		must(t, err)
		if again, _ := due(t, other, time.Now().Add(time.Hour)); len(again) != 1 || mine && n.Tries > 1 {
			t.Errorf("settled: %+v", again)
		}
	}

	// The run continues and waits for the same question again, which does not add another notice.
	begin(t, j, journal.RunInfo{ID: "w", Notify: []string{"ops"}})
	_, err = j.Ask(t.Context(), journal.Question{Run: "w", Path: "p", Name: "p", Asked: moment})
	must(t, err)
	for range 2 {
		finish(t, j, "w", journal.Outcome{State: journal.Waiting, Ended: time.Now()})
		_, err := j.Acquire(t.Context(), "w")
		must(t, err)
	}
	must(t, j.Release("w"))
	if _, text := due(t, other, time.Now(), "none"); text != "r ops run.canceled;w ops question.asked;" {
		t.Errorf("owed: %s", text)
	}
	must(t, j.Remove(t.Context(), "w"))
	must(t, j.Remove(t.Context(), "r"))
	if _, text := due(t, other, time.Now().Add(time.Hour)); text != "" {
		t.Errorf("owed for runs that were removed: %s", text)
	}
}

// testReceivers checks that receivers belong to a run and are limited in number, and that notices are added for them even if they
// are added late.
func testReceivers(t *testing.T, j tested) {
	if err := beside(j).PutReceiver(t.Context(), "none", owed.Receiver{Name: "a"}); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("of a run that does not exist: %v", err)
	}
	begin(t, j, journal.RunInfo{ID: "r"})
	for i := range owed.MostReceivers {
		must(t, beside(j).PutReceiver(t.Context(), "r", owed.Receiver{Name: fmt.Sprint("n", i), Bound: "host", Data: []byte("secret")}))
	}
	if err := beside(j).PutReceiver(t.Context(), "r", owed.Receiver{Name: "more"}); !errors.Is(err, owed.ErrFull) {
		t.Errorf("one more: %v", err)
	}
	must(t, beside(j).PutReceiver(t.Context(), "r", owed.Receiver{Name: "n0", Bound: "other", Data: []byte("new")}))
	for i := 2; i < owed.MostReceivers; i++ {
		must(t, beside(j).DropReceiver(t.Context(), "r", fmt.Sprint("n", i)))
	}
	finish(t, j, "r", journal.Outcome{State: journal.Failed, Ended: moment})
	all, err := beside(j.open()).Receivers(t.Context(), "r")
	if must(t, err); len(all) != 2 || string(all[0].Data) != "new" || all[1].Name != "n1" {
		t.Errorf("got %+v", all)
	}
	must(t, beside(j).PutReceiver(t.Context(), "r", owed.Receiver{Name: "late", Bound: "late"}))
	must(t, beside(j).DropReceiver(t.Context(), "r", "n1")) // also removes the receiver's notices
	if _, text := due(t, j, time.Now()); text != "r other run.failed;r late run.failed;" && text != "r late run.failed;r other run.failed;" {
		t.Errorf("owed: %s", text)
	}
}
