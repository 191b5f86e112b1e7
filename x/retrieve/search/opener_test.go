package search

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/sqlite"
)

// A file that was replaced stays open for the search that uses it, and is closed after that.
func TestReplacedIndex(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.db")
	build := func() {
		t.Helper()
		s, err := sqlite.Open(file)
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	build()
	o := &opener{index: file, address: file}
	first, leave, err := o.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, file+".old"); err != nil {
		t.Fatal(err)
	}
	build()
	second, leaveSecond, err := o.open(t.Context())
	if err != nil || second == first {
		t.Fatalf("the new file is not opened: %v", err)
	}
	if _, err := first.State(t.Context()); err != nil {
		t.Errorf("while it is used: %v", err)
	}
	if err := leave(); err != nil {
		t.Error(err)
	}
	if _, err := first.State(t.Context()); err == nil {
		t.Error("the old file is still open")
	}
	if err := leaveSecond(); err != nil {
		t.Error(err)
	}
	if _, err := second.State(t.Context()); err != nil {
		t.Errorf("the new file between searches: %v", err)
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
	if _, err := second.State(t.Context()); err == nil {
		t.Error("the file is open after the end")
	}
}

// Searches wait for one attempt to open a slow database, each until it is cancelled. The last one ends the attempt.
func TestSlowDatabase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.db")
	var tries atomic.Int32
	began, answers, over := make(chan struct{}, 9), make(chan struct{}), make(chan struct{}, 9)
	retrieve.Register("postgres", func(ctx context.Context, _ string, _ bool) (*retrieve.Store, error) {
		tries.Add(1)
		began <- struct{}{}
		select {
		case <-answers:
			return sqlite.Open(file)
		case <-ctx.Done():
			over <- struct{}{}
			return nil, ctx.Err()
		}
	})
	program, other := &kinds.Reader{Parts: map[string]any{}}, &kinds.Reader{Parts: map[string]any{}}
	const index = "postgres://stone@db.example.com/docs"
	o := share(program, index)
	if o != share(program, index) || o == share(other, index) || len(program.Closers) != 1 {
		t.Fatal("want one opener for two capabilities of a program, and another one for another program")
	}
	open := func(ctx context.Context) chan error {
		ended := make(chan error, 1)
		go func() {
			_, leave, err := o.open(ctx)
			if err == nil {
				err = leave()
			}
			ended <- err
		}()
		return ended
	}
	ctx, cancel := context.WithCancel(t.Context())
	impatient := open(ctx)
	<-began
	cancel()
	if err := <-impatient; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	<-over // nobody else has waited for it
	first, second := open(t.Context()), open(t.Context())
	<-began
	close(answers)
	if err := errors.Join(<-first, <-second, <-open(t.Context())); err != nil || tries.Load() != 2 {
		t.Errorf("%v after %d attempts", err, tries.Load())
	}
	store := o.now.Store
	if err := other.Closers[0](); err != nil || o.ended {
		t.Errorf("the other program has closed the index: %v", err)
	}
	if err := program.Closers[0](); err != nil {
		t.Error(err)
	}
	if _, err := store.State(t.Context()); err == nil {
		t.Error("the index is open after the end of the program")
	}
}

// Errors do not say where the index is.
func TestSay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.db")
	o := &opener{index: file, address: file}
	open := func(ctx context.Context, _ *call.Request) (*retrieve.Index, func() error, error) {
		_, _, err := o.open(ctx)
		return nil, nil, err
	}
	c := capability(call.Metadata{}, &retrieve.Index{}, retrieve.Query{}, o.say, open)
	for _, want := range []string{"no index: run stone index DIR", "the index: it is a database of another program: name another file"} {
		_, err := c.Invoke(t.Context(), &call.Request{Input: call.JSON(`"where?"`)})
		if e := call.AsError(err); e == nil || e.Message != want {
			t.Errorf("%v, want %s", err, want)
		}
		other, err := sqlite.Open(file)
		if err != nil {
			break
		}
		other.Close()
		if err := os.WriteFile(file, foreign(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o = &opener{index: "postgres://stone@db.example.com:5433/docs"}
	for text, want := range map[string]string{
		"index db.example.com/docs: it is being rebuilt: search again":                                    "the index: it is being rebuilt: search again",
		"index db.example.com/docs: failed to connect to `user=stone database=docs`: db.example.com:5433": "the database of the index cannot be reached: stone search says why",
	} {
		if got := o.say(errors.New(text)); got != want || strings.Contains(got, "example") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// foreign is a database of another program.
func foreign(t *testing.T) []byte {
	file := filepath.Join(t.TempDir(), "foreign.db")
	db, err := sql.Open("sqlite", file)
	if err == nil {
		_, err = db.Exec("CREATE TABLE t (a)")
	}
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
