package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// TestJournal tests that a journal fulfils the promises of package journal. It also calls TestRecorder. Store creates a new, empty
// store, and returns a function that opens a journal on it, as each process that shares the store would. If a store allows only
// one journal, the function always returns the same one. A store with a connection pool should also pass [TestReaders].
func TestJournal(t *testing.T, store func() (open func() journal.Journal)) {
	TestRecorder(t, func() step.Recorder { return store()() })
	for _, c := range slices.Concat(storeCases, runCases) {
		t.Run(c.name, func(t *testing.T) {
			t.Helper()
			open := store()
			c.test(t, tested{open(), open})
		})
	}
}

// tested is the journal under test, together with a function that opens another journal on the same store.
type tested struct {
	journal.Journal
	open func() journal.Journal
}

type journalCase struct {
	name string
	test func(*testing.T, tested)
}

var storeCases = []journalCase{
	{"a run has one holder", testHolder},
	{"tells when a run is no longer held", testHeld},
	{"a run that was not started leaves no record", testNothing},
	{"a run that was acquired and not started does not exist", testAcquired},
	{"records the input with the start", testStartsWithInput},
	{"a replay records nothing", testReplayOfDone},
	{"finds runs by a unique prefix", testFind},
	{"lists runs in pages", testPages},
	{"selects runs", testQuery},
	{"lists open questions of many runs", testOpenQuestions},
	{"refuses words that are too large for lists", testBounds},
	{"lists runs that can continue", testResumable},
	{"keeps the facts about a run", testInfo},
	{"forgets the failures that are tried again", testForget},
	{"counts attempts", testSteps},
	{"reuses as the run says", testReusePolicy},
	{"removes runs", testRemove},
	{"keeps questions", testQuestions},
	{"keeps the nodes of the end", testNodes},
	{"keeps the nodes with which a run stopped when it continues", testNodesAgain},
	{"shows a run while it is running", testFollow},
	{"reports changes", testChanges},
	{"shows one level of a run", testOutline},
	{"sums up a large run", testOutlineLarge},
	{"shows a node", testNode},
	{"finds a node by a prefix of its id", testNodePrefix},
	{"releases inner runs with the outer one", testInner},
	{"a run is not confused with one that was removed", testIdentity},
	{"finds a run behind others that do not exist yet", testHidden},
	{"keeps what an account has spent", testSpending},
	{"one process never exceeds a budget over several runs", testShared},
	{"what does not fit into a budget is refused at once", testSharedRefuses},
	{"a budget keeps what lost attempts may have cost", testSharedLost},
	{"a request that waits for a batch stays in flight", testSharedBatched},
	{"a run is canceled without its pipeline", testCanceled},
	{"keeps the batches of a run beside it", testBatches},
	{"an end owes notices, once", testNotices},
	{"receivers belong to a run", testReceivers},
	{"runs are counted as they are listed", testCounts},
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// begin acquires a run and starts it.
func begin(t *testing.T, j journal.Journal, info journal.RunInfo) {
	t.Helper()
	_, err := j.Acquire(t.Context(), info.ID)
	must(t, err)
	if info.Started.IsZero() {
		info.Started = moment
	}
	must(t, j.Begin(t.Context(), info, dag.DAG{}))
}

// words returns an input; digestOf returns its digest.
func words(t *testing.T, all ...string) dag.DAG {
	t.Helper()
	var d dag.DAG
	for _, word := range all {
		var err error
		d, err = draft.Append(d, word)
		must(t, err)
	}
	return d
}

func digestOf(d dag.DAG) dag.ID { return dag.Everything.Queries()[0].Digest(d, false) }

var moment = time.Unix(1_800_000_000, 0).UTC()

// finish ends a run and releases it.
func finish(t *testing.T, j journal.Journal, id string, o journal.Outcome) {
	t.Helper()
	must(t, j.End(t.Context(), id, o))
	sameOneByOne(t, j, id)
}

func do(t *testing.T, j journal.Journal, key step.Key, rec step.Record) step.Record {
	t.Helper()
	return recorder{t, j}.do(key, rec)
}

func wantHeld(t *testing.T, err error, run string) {
	t.Helper()
	if held, ok := errors.AsType[*journal.HeldError](err); !ok || held.Run != run || held.Owner == "" {
		t.Errorf("error %v, want a HeldError that names the run and its holder", err)
	}
}

func testHolder(t *testing.T, j tested) {
	other := j.open()
	begin(t, j, journal.RunInfo{ID: "run"})
	for _, rival := range []journal.Journal{j, other} {
		_, err := rival.Acquire(t.Context(), "run")
		wantHeld(t, err, "run")
		wantHeld(t, rival.Remove(t.Context(), "run"), "run")
	}
	info, err := other.Find(t.Context(), "run")
	if err != nil || info.State != journal.Running || info.Owner == "" {
		t.Errorf("Find of a run that is held: %+v, %v; want it running, with an owner", info, err)
	}
	begin(t, other, journal.RunInfo{ID: "other"}) // each run is held separately
	must(t, j.Release("run"))
	must(t, j.Release("run"))
	must(t, j.Release("none"))
	if info, err = j.Find(t.Context(), "run"); err != nil || info.State != journal.Interrupted || info.Owner != "" {
		t.Errorf("Find of a run that was left: %+v, %v; want it interrupted, without an owner", info, err)
	}
	info, err = other.Acquire(t.Context(), "run")
	if err != nil || info.ID != "run" || !info.Started.Equal(moment) {
		t.Errorf("Acquire of a run that was left: %+v, %v", info, err)
	}
	held := other.Held("run")
	must(t, other.End(t.Context(), "run", journal.Outcome{State: journal.Waiting}))
	must(t, other.Release("run"))
	if held.Err() == nil || other.Held("run").Err() == nil {
		t.Error("a run that has ended is held")
	}
	if err := other.End(t.Context(), "run", journal.Outcome{State: journal.Done}); err == nil {
		t.Error("a run that was left has ended a second time")
	}
	info, err = j.Acquire(t.Context(), "run") // must succeed immediately
	if err != nil || info.State != journal.Waiting {
		t.Errorf("Acquire of a run that has ended: %+v, %v; want it waiting", info, err)
	}
	must(t, j.Release("run"))
	must(t, other.Release("other"))
}

func testNothing(t *testing.T, j tested) {
	info, err := j.Acquire(t.Context(), "run")
	if err != nil || info.ID != "" {
		t.Errorf("Acquire of a new run: %+v, %v; want nothing known", info, err)
	}
	must(t, j.Release("run"))
	if _, err = j.Find(t.Context(), "run"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("Find: %v, want ErrNoRun", err)
	}
	steps, err := j.Steps(t.Context(), "run")
	if len(steps) > 0 || err != nil {
		t.Errorf("Steps: %v, %v", steps, err)
	}
	if d, err := j.DAG(t.Context(), "run"); d.Len() > 0 || err != nil {
		t.Errorf("DAG: %d nodes, %v", d.Len(), err)
	}
	if q, err := j.Questions(t.Context(), "run"); len(q) > 0 || err != nil {
		t.Errorf("Questions: %v, %v", q, err)
	}
}

func testFind(t *testing.T, j tested) {
	for _, id := range []string{"alpha", "alps", "beta", "al_", "al%"} {
		begin(t, j, journal.RunInfo{ID: id})
	}
	for prefix, want := range map[string]string{"alpha": "alpha", "alph": "alpha", "b": "beta", "al_": "al_", "al%": "al%"} {
		if info, err := j.Find(t.Context(), prefix); err != nil || info.ID != want {
			t.Errorf("Find(%q) = %q, %v; want %q", prefix, info.ID, err, want)
		}
	}
	for _, prefix := range []string{"gamma", "", "Beta", "_l"} {
		if _, err := j.Find(t.Context(), prefix); !errors.Is(err, journal.ErrNoRun) {
			t.Errorf("Find(%q): %v, want ErrNoRun", prefix, err)
		}
	}
	_, err := j.Find(t.Context(), "al")
	if several, ok := errors.AsType[*journal.AmbiguousError](err); !ok || len(several.Found) != 4 {
		t.Errorf("Find(al): %v, want an AmbiguousError with 4 runs", err)
	}
}

func testPages(t *testing.T, j tested) {
	for i := range 5 {
		id := fmt.Sprint("run", i)
		begin(t, j, journal.RunInfo{ID: id, Shape: []journal.Part{{Path: "p"}}})
		if i%2 == 0 {
			finish(t, j, id, journal.Outcome{State: journal.Done})
		}
	}
	for _, c := range []struct {
		query journal.Query
		want  string
	}{
		{journal.Query{}, "[run4 run3 run2 run1 run0]"},
		{journal.Query{Limit: 2}, "[run4 run3]"},
		{journal.Query{Limit: 2, Before: "run3"}, "[run2 run1]"},
		{journal.Query{Before: "run0"}, "[]"},
		{journal.Query{States: []journal.State{journal.Done}}, "[run4 run2 run0]"},
		{journal.Query{States: []journal.State{journal.Done}, Limit: 1, Before: "run4"}, "[run2]"},
		{journal.Query{States: []journal.State{journal.Running, journal.Failed}}, "[run3 run1]"},
	} {
		runs, err := j.Runs(t.Context(), c.query)
		must(t, err)
		ids := []string{}
		for _, r := range runs {
			ids = append(ids, r.ID)
			if r.Shape != nil {
				t.Errorf("Runs(%+v) brings the shape of %s along", c.query, r.ID)
			}
		}
		if got := fmt.Sprint(ids); got != c.want {
			t.Errorf("Runs(%+v) = %s, want %s", c.query, got, c.want)
		}
	}
	if _, err := j.Runs(t.Context(), journal.Query{Before: "none"}); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("Runs before an unknown run: %v, want ErrNoRun", err)
	}
}

func testRemove(t *testing.T, j tested) {
	begin(t, j, journal.RunInfo{ID: "run"})
	k := key("a")
	k.Reuse = dag.ID{7}
	do(t, j, k, value("one"))
	_, err := j.Ask(t.Context(), journal.Question{Run: "run", Path: "p", Name: "p", Asked: moment})
	must(t, err)
	finish(t, j, "run", journal.Outcome{State: journal.Done})

	begin(t, j, journal.RunInfo{ID: "later", Reuse: "run"})
	again := k
	again.RunID = "later"
	recorder{t, j}.replay(again)
	must(t, j.Remove(t.Context(), "run"))
	if err := j.Remove(t.Context(), "run"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("Remove of an unknown run: %v, want ErrNoRun", err)
	}
	recorder{t, j}.replay(again) // the run has a result of its own
	if _, err := j.Find(t.Context(), "run"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("Find after Remove: %v, want ErrNoRun", err)
	}
	if q, err := j.Questions(t.Context(), "run"); len(q) > 0 || err != nil {
		t.Errorf("Questions after Remove: %v, %v", q, err)
	}
	begin(t, j, journal.RunInfo{ID: "run"})
	if do(t, j, k, value("two")).Replayed {
		t.Error("a run that was removed was replayed")
	}
}

func testQuestions(t *testing.T, j tested) {
	first := journal.Question{Run: "run", Path: "p/a", Name: "a", Text: "why?", Choices: []string{"x", "y"}, Schema: []byte(`{"type":"string"}`), Asked: moment}
	second := journal.Question{Run: "run", Path: "p/b", Name: "b", Text: "how?", Asked: moment}
	put := func(q journal.Question) journal.Question {
		t.Helper()
		kept, err := j.Ask(t.Context(), q)
		must(t, err)
		return kept
	}
	put(first)
	put(second)
	if kept := put(first); !kept.Open() {
		t.Errorf("an unanswered question is %+v", kept)
	}
	must(t, j.open().Answer(t.Context(), "run", "p/a", ask.Answer{Response: "x", By: "user ada", Given: moment}))
	for _, path := range []string{"p/a", "p/none"} {
		if err := j.Answer(t.Context(), "run", path, ask.Answer{Response: "y"}); !errors.Is(err, journal.ErrNoQuestion) {
			t.Errorf("Answer(%s): %v, want ErrNoQuestion", path, err)
		}
	}
	if kept := put(first); kept.Open() || kept.Response != "x" || kept.By != "user ada" || !kept.Given.Equal(moment) {
		t.Errorf("after the answer: %+v", kept)
	}
	questions, err := j.Questions(t.Context(), "run")
	must(t, err)
	if len(questions) != 2 || questions[0].Path != "p/a" || questions[1].Path != "p/b" || !questions[1].Open() {
		t.Fatalf("Questions: %+v", questions)
	}
	q := questions[0]
	if q.Text != "why?" || fmt.Sprint(q.Choices) != "[x y]" || string(q.Schema) != `{"type":"string"}` || !q.Asked.Equal(moment) || q.Name != "a" {
		t.Errorf("recorded question: %+v", q)
	}
	first.Problem, first.Text, first.Version, first.Choices = "no good", "why not?", "new", []string{"z"}
	if _, err := j.Ask(t.Context(), first); err == nil {
		t.Error("a journal that does not hold the run withdrew its answer")
	}
	begin(t, j, journal.RunInfo{ID: "run"})
	if other := j.open(); other != j.Journal {
		if _, err := other.Ask(t.Context(), first); err == nil {
			t.Error("a journal withdrew an answer of a run that another one holds")
		}
	}
	if questions, err := j.Questions(t.Context(), "run"); err != nil || questions[0].Response != "x" || questions[0].Text != "why?" {
		t.Errorf("after that: %+v, %v; want that the answer stands", questions, err)
	}
	if kept := put(first); !kept.Open() || kept.By != "" || !kept.Given.IsZero() || kept.Problem != "no good" || kept.Text != "why not?" || kept.Version != "new" || fmt.Sprint(kept.Choices) != "[z]" || !kept.Asked.Equal(moment) {
		t.Errorf("after its answer was refused: %+v, want it open, with its new text", kept)
	}
	if err := j.Answer(t.Context(), "run", "p/a", ask.Answer{To: "old"}); !errors.Is(err, journal.ErrAsksOther) {
		t.Errorf("an answer to an earlier version: %v, want ErrAsksOther", err)
	}
	must(t, j.Answer(t.Context(), "run", "p/a", ask.Answer{To: "new"}))
	first.Problem = ""
	if kept := put(first); kept.Open() || kept.Response != "" {
		t.Errorf("after it was cancelled: %+v, want it answered with an empty response", kept)
	}
}

func testNodes(t *testing.T, j tested) {
	var d dag.DAG
	for i := range 3 {
		n, err := dag.NewNode(dag.Spec{Type: "t", Content: i, Parents: d.Next(), Time: moment})
		must(t, err)
		d, err = d.Append(n)
		must(t, err)
	}
	begin(t, j, journal.RunInfo{ID: "run"})
	rec := value("")
	rec.Node = d.Latest()
	rec.Type, rec.Content = rec.Node.Type(), rec.Node.Content()
	do(t, j, key("a"), rec)
	got, err := j.open().DAG(t.Context(), "run")
	if err != nil || got.Len() != 3 {
		t.Errorf("DAG of a running run: %d nodes, %v; want the 3 from which a leaf made its own", got.Len(), err)
	}
	for _, kind := range []string{"x", "failure"} {
		n, err := dag.NewNode(dag.Spec{Type: kind, Content: "end", Parents: d.Next()})
		must(t, err)
		d, err = d.Append(n)
		must(t, err)
	}
	finish(t, j, "run", journal.Outcome{State: journal.Failed, DAG: d})
	got, err = j.open().DAG(context.Background(), "run")
	if err != nil || got.Len() != d.Len() || got.Latest().ID() != d.Latest().ID() {
		t.Errorf("DAG of a run that has ended: %d nodes, %v; want %d", got.Len(), err, d.Len())
	}
}

// testNodesAgain continues a run that stopped with nodes that no step created, such as its input. Its records have already been
// read by then, because the input is read before the run begins again.
func testNodesAgain(t *testing.T, j tested) {
	grow := func(d dag.DAG, content string) dag.DAG {
		n, err := dag.NewNode(dag.Spec{Type: "t", Content: content, Parents: d.Next(), Time: moment})
		must(t, err)
		d, err = d.Append(n)
		must(t, err)
		return d
	}
	for name, steps := range map[string]int{"read by a step": 1, "read by none": 0} {
		begin(t, j, journal.RunInfo{ID: name})
		recorded := recorder{t, j}
		recorded.do(step.Key{RunID: name, Path: "p/a", Kind: "leaf", Name: "a", Digest: dag.ID{1}}, value("a"))
		d := grow(dag.DAG{}, "input")
		finish(t, j, name, journal.Outcome{State: journal.Waiting, DAG: d})
		_, err := j.Acquire(t.Context(), name)
		must(t, err)
		if _, err := j.Do(t.Context(), step.Key{RunID: name, Path: "p/none", Kind: "input", Digest: dag.ID{2}}, func(context.Context) (step.Record, error) {
			return step.Record{}, errors.New("not recorded")
		}); err == nil {
			t.Error("a record that does not exist was found")
		}
		must(t, j.Begin(t.Context(), journal.RunInfo{ID: name, Started: moment}, dag.DAG{}))
		for i := range steps {
			d = grow(d, "made")
			rec := value("")
			rec.Node = d.Latest()
			rec.Type, rec.Content = rec.Node.Type(), rec.Node.Content()
			recorded.do(step.Key{RunID: name, Path: "p/b", Kind: "leaf", Name: "b", Digest: dag.ID{3, byte(i)}}, rec)
		}
		d = grow(d, "end")
		finish(t, j, name, journal.Outcome{State: journal.Done, DAG: d})
		got, err := j.open().DAG(t.Context(), name)
		if err != nil || got.Len() != d.Len() || got.Latest().ID() != d.Latest().ID() {
			t.Errorf("%s: DAG: %d nodes, %v; want %d", name, got.Len(), err, d.Len())
		}
	}
}
