package journaltest

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// A Compressor is a journal that can compress the contents of runs that have ended, and check what it has.
type Compressor interface {
	journal.Journal
	Compress(ctx context.Context, q journal.Query, each func(run string, before, after int64)) error
	Check(ctx context.Context, found func(*journal.DamageError)) (runs, records int, err error)
}

// Compressing is a journal that compresses a run as soon as it has ended, to show that readers see no difference.
type Compressing struct{ Compressor }

// End ends the run and compresses all that have ended.
func (c Compressing) End(ctx context.Context, id string, o journal.Outcome) error {
	return errors.Join(c.Compressor.End(ctx, id, o), c.Compress(context.WithoutCancel(ctx), journal.Query{}, func(string, int64, int64) {}))
}

// TestCompress tests the compression of runs that have ended. Store makes a store as for TestJournal, and a function that
// replaces the content of each result of the run "run".
func TestCompress(t *testing.T, store func() (open func() Compressor, replace func(content []byte))) {
	t.Run("again and again", func(t *testing.T) {
		open, _ := store()
		testCompress(t, open)
	})
	t.Run("interrupted", func(t *testing.T) {
		open, _ := store()
		testCompressInterrupted(t, open)
	})
	t.Run("damaged", func(t *testing.T) {
		open, replace := store()
		testCompressDamaged(t, open, replace)
	})
}

// long is a content of about a kilobyte that shrinks, and short one that does not.
func long(n int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf("%q", strings.Repeat(fmt.Sprint("the content of step ", n, "; "), 40)))
}

var short = json.RawMessage(`"short"`)

// texts does a run with steps that have long and short contents.
func texts(t *testing.T, j journal.Journal, id string, steps int, state journal.State) {
	t.Helper()
	begin(t, j, journal.RunInfo{ID: id})
	for n := range steps {
		for path, content := range map[string]json.RawMessage{fmt.Sprint("long-", n): long(n), fmt.Sprint("short-", n): short} {
			k := step.Key{RunID: id, Path: path, Kind: "step", Name: path, Digest: sha256.Sum256([]byte(path))}
			rec := step.Record{Content: content, Time: moment}
			rec.Sum = rec.Seal()
			do(t, j, k, rec)
		}
	}
	must(t, j.End(t.Context(), id, journal.Outcome{State: state, Ended: moment}))
	must(t, j.Release(id))
}

// wantTexts wants the contents of texts.
func wantTexts(t *testing.T, j Compressor, id string, steps int) {
	t.Helper()
	for n := range steps {
		for path, want := range map[string]json.RawMessage{fmt.Sprint("long-", n): long(n), fmt.Sprint("short-", n): short} {
			rec, err := j.Record(t.Context(), id, path, "step")
			if err != nil || !bytes.Equal(rec.Content, want) {
				t.Fatalf("the record of %s has %.100s, %v; want %.100s", path, rec.Content, err, want)
			}
		}
	}
	_, _, err := j.Check(t.Context(), func(e *journal.DamageError) { t.Errorf("Check: %v", e) })
	must(t, err)
}

func compressed(t *testing.T, j Compressor, q journal.Query) (runs string) {
	t.Helper()
	must(t, j.Compress(t.Context(), q, func(run string, before, after int64) {
		if runs += run + " "; after > before/2 {
			t.Errorf("the contents of %s had %d bytes and have %d", run, before, after)
		}
	}))
	return runs
}

func testCompress(t *testing.T, open func() Compressor) {
	j := open()
	texts(t, j, "done", 20, journal.Done)
	texts(t, j, "failed", 20, journal.Failed)
	texts(t, j, "waits", 20, journal.Waiting)
	texts(t, j, "empty", 0, journal.Canceled)
	before, err := j.Steps(t.Context(), "done")
	must(t, err)
	_, err = open().Acquire(t.Context(), "done") // who holds an ended run is not in the way
	must(t, err)
	for _, c := range []struct {
		q    journal.Query
		want string
	}{
		{journal.Query{States: []journal.State{journal.Failed}}, "failed "},
		{journal.Query{Until: moment}, ""},
		{journal.Query{}, "empty done "},
		{journal.Query{}, ""},
	} {
		if got := compressed(t, open(), c.q); got != c.want {
			t.Errorf("Compress(%+v): %q, want %q", c.q, got, c.want)
		}
	}
	for _, id := range []string{"done", "failed", "waits"} {
		wantTexts(t, open(), id, 20)
	}
	after, err := open().Steps(t.Context(), "done")
	if diff := cmp.Diff(before, after); err != nil || diff != "" {
		t.Errorf("steps before and after, %v (-want +got):\n%s", err, diff)
	}
	texts(t, j, "failed", 30, journal.Failed) // continues
	if got, want := compressed(t, open(), journal.Query{}), "failed "; got != want {
		t.Errorf("a run that was continued: %q, want %q", got, want)
	}
	wantTexts(t, open(), "failed", 30)
}

// What an interrupted compression leaves is done by the next one, while another process continues the run in between.
func testCompressInterrupted(t *testing.T, open func() Compressor) {
	const steps = 900
	j := open()
	texts(t, j, "run", steps, journal.Failed)
	left := "run"
	for n := 1; left != ""; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		other := open()
		counting := &countdown{Context: ctx, cancel: cancel}
		counting.left.Store(int64(n))
		err := other.Compress(counting, journal.Query{}, func(string, int64, int64) { left = "" })
		if cancel(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if n == 5 {
			texts(t, j, "run", steps, journal.Failed)
		}
	}
	wantTexts(t, open(), "run", steps)
}

// countdown is a context that ends when it has been asked so many times whether it has.
type countdown struct {
	context.Context
	left   atomic.Int64
	cancel func()
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		c.cancel()
	}
	return c.Context.Err()
}

func (c *countdown) Done() <-chan struct{} {
	_ = c.Err()
	return c.Context.Done()
}

// Damage of a compressed content is found, and takes no more memory than the content claims.
func testCompressDamaged(t *testing.T, open func() Compressor, replace func(content []byte)) {
	j := open()
	texts(t, j, "run", 1, journal.Done)
	compressed(t, j, journal.Query{})
	wantTexts(t, open(), "run", 1)
	packed := func(size uint64, content []byte) []byte {
		var b bytes.Buffer
		b.Write(binary.AppendUvarint([]byte{1}, size))
		w, err := flate.NewWriter(&b, 9)
		must(t, err)
		_, err = w.Write(content)
		must(t, errors.Join(err, w.Close()))
		return b.Bytes()
	}
	bomb := packed(10, make([]byte, 200<<20))
	for name, content := range map[string][]byte{
		"another content":    packed(uint64(len(long(1))), long(1)),
		"a bomb":             bomb,
		"a huge claim":       packed(1<<62, long(0)),
		"a large claim":      packed(250<<20, long(0)),
		"a claim too large":  packed(uint64(len(long(0)))+1, long(0)),
		"a claim too small":  packed(uint64(len(long(0)))-1, long(0)),
		"no size":            {1, 0xff, 0xff, 0xff},
		"nothing":            {1},
		"no frame":           append([]byte{1, 40}, "this was never compressed by anybody"...),
		"the end is missing": packed(uint64(len(long(0))), long(0))[:40],
		"plain":              short,
	} {
		replace(content)
		other := open()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := other.Record(t.Context(), "run", "long-0", "step")
		runtime.ReadMemStats(&after)
		if bad, is := errors.AsType[*journal.DamageError](err); !is || bad.Run != "run" {
			t.Errorf("%s: %v, want a DamageError of the run", name, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
			t.Errorf("%s: it takes %d MB to read", name, took>>20)
		}
		found := 0
		_, _, err = other.Check(t.Context(), func(*journal.DamageError) { found++ })
		if err != nil || found == 0 {
			t.Errorf("%s: Check finds %d damages, %v", name, found, err)
		}
		if got := compressed(t, other, journal.Query{}); got != "" { // and leaves it alone
			t.Errorf("%s: Compress does %q", name, got)
		}
	}
}
