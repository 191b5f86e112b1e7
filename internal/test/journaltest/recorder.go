package journaltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/step"
)

// TestRecorder tests that a recorder fulfils the promises of step.Recorder. Open returns an empty recorder. It is called once for
// each part of the test.
func TestRecorder(t *testing.T, open func() step.Recorder) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Helper()
			c.test(t, recorder{t, open()})
		})
	}
}

var cases = []struct {
	name string
	test func(*testing.T, recorder)
}{
	{"replays what it recorded", testReplay},
	{"keeps every field", testFields},
	{"replays failures", testFailure},
	{"records nothing when work fails", testUnfinished},
	{"tells runs and digests apart", testKeys},
	{"finds other work at a place", testPlaces},
	{"records values", testValues},
	{"reuses across runs", testReuse},
	{"reuses what is fresh", testReuseFresh},
	{"does not reuse failures", testReuseFailure},
	{"does not reuse from the run itself", testReuseOwn},
	{"does not reuse unshared records", testReuseUnshared},
	{"finds records when the context is done", testFindDone},
	{"records although the context is done", testDone},
	{"hands its context to work", testContext},
	{"is not changed by its callers", testClone},
	{"first record stands", testFirst},
	{"serves several goroutines", testConcurrent},
}

// recorder is the recorder under test.
type recorder struct {
	*testing.T
	step.Recorder
}

// do calls Do with work that returns rec.
func (r recorder) do(key step.Key, rec step.Record) step.Record {
	r.Helper()
	got, err := r.Recorder.Do(context.Background(), key, func(context.Context) (step.Record, error) { return rec, nil })
	if err != nil {
		r.Fatalf("Do(%s): %v", key.Path, err)
	}
	return got
}

// replay calls Do and reports an error if Do calls work.
func (r recorder) replay(key step.Key) step.Record {
	r.Helper()
	got, err := r.Recorder.Do(context.Background(), key, func(context.Context) (step.Record, error) {
		r.Helper()
		r.Errorf("Do(%s) called work, want the record from before", key.Path)
		return value("again"), nil
	})
	if err != nil {
		r.Fatalf("Do(%s): %v", key.Path, err)
	}
	if !got.Replayed {
		r.Errorf("Do(%s) returned a record without Replayed, want it set", key.Path)
	}
	return got
}

// key returns the key of a step in the run "run".
func key(name string) step.Key {
	return step.Key{RunID: "run", Path: "p/" + name, Kind: "step", Name: name, Digest: dag.ID{1, byte(len(name)), name[0], name[len(name)-1]}}
}

func value(s string) step.Record {
	content, _ := json.Marshal(s)
	return step.Record{Content: content, Time: time.Unix(1700000000, 123456000).UTC(), Sum: dag.ID{9}}
}

func (r recorder) want(got step.Record, content string) {
	r.Helper()
	if string(got.Content) != content {
		r.Errorf("Do returned the content %s, want %s", got.Content, content)
	}
}

func testReplay(t *testing.T, r recorder) {
	if first := r.do(key("a"), value("one")); first.Replayed {
		t.Error("Do returned the first record with Replayed set")
	}
	r.want(r.replay(key("a")), `"one"`)
	r.want(r.replay(key("a")), `"one"`)
}

func testFields(t *testing.T, r recorder) {
	content := json.RawMessage(`{"big":9007199254740993,"html":"<&>\u2028","none":null,"text":"żółw 🐢"}`)
	node, err := dag.NewNode(dag.Spec{Type: "doc", Content: content})
	if err != nil {
		t.Fatal(err)
	}
	want := value("")
	want.Type, want.Content, want.Meta, want.Node = "doc", node.Content(), map[string]string{"a": "1", "": "ż"}, node
	want.Kept = json.RawMessage(`{"nodes":["ż"]}`)
	if first := r.do(key("a"), want); first.Node != node {
		t.Errorf("Do returned the first record with node %v, want the one that work returned", first.Node)
	}
	got := r.replay(key("a"))
	if got.Node != nil {
		t.Errorf("a replayed record has the node %v, want none", got.Node)
	}
	again, err := dag.NewNode(dag.Spec{Type: got.Type, Content: got.Content})
	if err != nil {
		t.Fatalf("replayed content %s: %v", got.Content, err)
	}
	if again.ID() != node.ID() {
		t.Errorf("replayed content %s, want %s", again.JSON(), node.JSON())
	}
	if !got.Time.Equal(want.Time) {
		t.Errorf("replayed time %v, want %v", got.Time, want.Time)
	}
	before, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if after, err := json.Marshal(got); err != nil || string(after) != string(before) {
		t.Errorf("replayed %s, %v, want %s: every field of a record's JSON must survive", after, err, before)
	}
	if !reflect.DeepEqual(got.Meta, want.Meta) || got.Sum != want.Sum || got.Failure != nil {
		t.Errorf("replayed meta %v, sum %v, failure %v; want %v, %v, none", got.Meta, got.Sum, got.Failure, want.Meta, want.Sum)
	}
}

func failure() step.Record {
	lane := 3
	return step.Record{Failure: &dag.FailureContent{Kind: "k", Reason: "no <luck>", Lane: &lane}, Time: value("").Time, Sum: dag.ID{8}}
}

func testFailure(t *testing.T, r recorder) {
	r.do(key("a"), failure())
	got := r.replay(key("a"))
	if !reflect.DeepEqual(got.Failure, failure().Failure) || got.Sum != failure().Sum {
		t.Errorf("replayed the failure %+v, want %+v", got.Failure, failure().Failure)
	}
}

func testUnfinished(t *testing.T, r recorder) {
	broken := errors.New("broken")
	_, err := r.Recorder.Do(context.Background(), key("a"), func(context.Context) (step.Record, error) {
		return step.Record{}, broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("Do returned the error %v, want work's error", err)
	}
	if got := r.do(key("a"), value("two")); got.Replayed {
		t.Error("Do replayed a step whose work returned an error")
	}
	r.want(r.replay(key("a")), `"two"`)
}

func testKeys(t *testing.T, r recorder) {
	other := key("a")
	other.RunID = "other"
	changed := key("a")
	changed.Digest[31]++
	changed.Loose = true
	for i, k := range []step.Key{key("a"), other, changed, key("b")} {
		if got := r.do(k, value(fmt.Sprint(i))); got.Replayed {
			t.Errorf("Do took the record of another key for %+v", k)
		}
	}
	for i, k := range []step.Key{key("a"), other, changed, key("b")} {
		r.want(r.replay(k), fmt.Sprintf("%q", fmt.Sprint(i)))
	}
}

// testPlaces checks that the record at a place is found even if it belongs to different work.
func testPlaces(t *testing.T, r recorder) {
	r.do(key("a"), value("one"))
	other := key("a")
	other.Digest[31]++
	for range 2 {
		got := r.do(other, value("two"))
		if !got.Replayed || !got.Differs || got.Path != other.Path {
			t.Errorf("Do of other work at a place returned %+v, want the record there, with Replayed, Differs and its path", got)
		}
		r.want(got, `"one"`)
		if got := r.replay(key("a")); got.Differs || got.Path != other.Path {
			t.Errorf("Do returned %+v for the recorded key, want its path and no Differs", got)
		}
	}
	kind := other
	kind.Kind = "leaf"
	kind.Digest[30]++
	if got := r.do(kind, value("a leaf")); got.Replayed {
		t.Error("Do took the record of another kind at the path")
	}
	loose := other
	loose.Loose = true
	if got := r.do(loose, value("three")); got.Replayed {
		t.Error("Do took the record of other work for a loose key")
	}
	r.want(r.replay(loose), `"three"`)
	anew := other
	anew.Digest[28]++
	anew.Replace = true
	if got := r.do(anew, value("four")); got.Replayed {
		t.Error("Do took the record of other work for work that is done anew")
	}
	last := other
	last.Digest[29]++
	if got := r.do(last, value("five")); !got.Differs {
		t.Errorf("Do of other work returned %+v where work was done anew, want that record", got)
	} else {
		r.want(got, `"four"`)
	}
}

// testValues checks that a value is recorded in the same way as a step.
func testValues(t *testing.T, r recorder) {
	k := key("now")
	k.Kind = step.Value
	r.do(k, value("one"))
	r.want(r.replay(k), `"one"`)
	r.do(key("a"), value("two"))
	r.want(r.replay(k), `"one"`)
}

func testReuse(t *testing.T, r recorder) {
	k := key("a")
	k.Reuse = dag.ID{7}
	r.do(k, value("one"))
	later := k
	later.RunID, later.Path = "later", "q/a"
	later.Digest[30]++
	r.want(r.replay(later), `"one"`)
	later.Reuse, later.RunID = dag.ID{6}, "latest"
	if r.do(later, value("two")).Replayed {
		t.Error("Do took the record of another Reuse")
	}
}

func testReuseFresh(t *testing.T, r recorder) {
	k := key("a")
	k.Reuse = dag.ID{7}
	old, young := value("old"), value("young")
	young.Time = old.Time.Add(time.Hour)
	r.do(k, old)
	k.RunID = "young"
	k.Fresh = young.Time
	r.do(k, young) // finds no record
	k.RunID = "later"
	rec := r.replay(k)
	if r.want(rec, `"young"`); rec.Meta[terms.From] != "young" || !rec.Time.Equal(young.Time) {
		t.Errorf("it says of its origin %v, %v", rec.Meta, rec.Time)
	}
	k.RunID, k.Fresh = "latest", old.Time
	r.want(r.replay(k), `"old"`)
}

func testReuseFailure(t *testing.T, r recorder) {
	k := key("a")
	k.Reuse = dag.ID{7}
	r.do(k, failure())
	r.replay(k)
	later := k
	later.RunID = "later"
	if r.do(later, value("two")).Replayed {
		t.Error("Do reused a failure in another run")
	}
}

func testReuseOwn(t *testing.T, r recorder) {
	k := key("a")
	k.Reuse = dag.ID{7}
	r.do(k, value("one"))
	second := k
	second.Path, second.Digest = "p/b", dag.ID{30: 1}
	if r.do(second, value("two")).Replayed {
		t.Error("a run reused its own record: two samples became one")
	}
	k.RunID, k.Digest[30] = "later", 9
	r.want(r.replay(k), `"one"`)
}

func testReuseUnshared(t *testing.T, r recorder) {
	k := key("a")
	k.Reuse = dag.ID{7}
	rec := value("one")
	rec.Unshared = true
	r.do(k, rec)
	if !r.replay(k).Unshared {
		t.Error("the record has forgotten that it is unshared")
	}
	k.RunID = "later"
	if r.do(k, value("two")).Replayed {
		t.Error("another run took a record that is unshared")
	}
}

func testFindDone(t *testing.T, r recorder) {
	k := key("a")
	k.Reuse = dag.ID{7}
	r.do(k, value("one"))
	r.replay(k) // read from the store, if the recorder has one
	other := key("b")
	other.RunID = "later"
	r.do(other, value("two")) // creates the other run
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, run := range []string{k.RunID, "later"} {
		k.RunID = run
		rec, err := r.Recorder.Do(ctx, k, func(ctx context.Context) (step.Record, error) { return step.Record{}, ctx.Err() })
		if err != nil || string(rec.Content) != `"one"` {
			t.Errorf("run %s: Do with a context that is done = %s, %v; want the record", run, rec.Content, err)
		}
	}
}

func testDone(t *testing.T, r recorder) {
	ctx, cancel := context.WithCancel(context.Background())
	_, err := r.Recorder.Do(ctx, key("a"), func(context.Context) (step.Record, error) {
		cancel()
		return value("paid"), nil
	})
	if err != nil {
		t.Errorf("Do(cancelled while work ran): %v, want the record", err)
	}
	r.want(r.replay(key("a")), `"paid"`)
}

func testContext(t *testing.T, r recorder) {
	type contextKey struct{}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), contextKey{}, "v"))
	_, err := r.Recorder.Do(ctx, key("a"), func(ctx context.Context) (step.Record, error) {
		if ctx.Value(contextKey{}) != "v" {
			t.Error("the context of work lacks a value of the context of Do")
		}
		cancel(cause)
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Error("the context of work does not end with the context of Do")
		}
		return step.Record{}, context.Cause(ctx)
	})
	if !errors.Is(err, cause) {
		t.Errorf("Do returned the error %v, want work's error, %v", err, cause)
	}
}

func testClone(t *testing.T, r recorder) {
	rec := value("one")
	rec.Meta = map[string]string{"k": "v"}
	r.do(key("a"), rec)
	rec.Content[1], rec.Meta["k"] = 'X', "X"
	got := r.replay(key("a"))
	r.want(got, `"one"`)
	if got.Meta["k"] != "v" {
		t.Errorf("meta changed to %v", got.Meta)
	}
	got.Content[1], got.Meta["k"] = 'Y', "Y"
	again := r.replay(key("a"))
	r.want(again, `"one"`)
	if again.Meta["k"] != "v" {
		t.Errorf("meta changed to %v", again.Meta)
	}
}

// testFirst lets another caller record the same key while work is running, as another process with the same store would. A
// recorder with leases, in which the second caller must wait for the first, may never call the second work.
func testFirst(t *testing.T, r recorder) {
	var calls atomic.Int64
	var group sync.WaitGroup
	started := make(chan struct{})
	results := make([]step.Record, 2)
	for i := range results {
		group.Go(func() {
			rec, err := r.Recorder.Do(context.Background(), key("a"), func(context.Context) (step.Record, error) {
				if calls.Add(1) == 2 {
					close(started)
				} else {
					select {
					case <-started:
					case <-time.After(50 * time.Millisecond):
					}
				}
				return value(fmt.Sprint(i)), nil
			})
			if err != nil {
				t.Error(err)
			}
			results[i] = rec
		})
	}
	group.Wait()
	if string(results[0].Content) != string(results[1].Content) || results[0].Replayed == results[1].Replayed {
		t.Errorf("two callers got %s (replayed: %t) and %s (replayed: %t), want one record, replayed for one of them",
			results[0].Content, results[0].Replayed, results[1].Content, results[1].Replayed)
	}
	r.want(r.replay(key("a")), string(results[0].Content))
}

func testConcurrent(t *testing.T, r recorder) {
	const n = 64
	var calls atomic.Int64
	for range 2 {
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() {
				k := key("a")
				k.Path, k.Digest = fmt.Sprint("p/", i), dag.ID{2, byte(i)}
				got, err := r.Recorder.Do(context.Background(), k, func(context.Context) (step.Record, error) {
					calls.Add(1)
					return value(fmt.Sprint(i)), nil
				})
				if err != nil || string(got.Content) != fmt.Sprintf("%q", fmt.Sprint(i)) {
					t.Errorf("Do(%d) = %s, %v", i, got.Content, err)
				}
			})
		}
		group.Wait()
	}
	if calls.Load() != n {
		t.Errorf("work was called %d times for %d keys", calls.Load(), n)
	}
}
