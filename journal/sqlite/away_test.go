package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

// Another program locks the file for longer than a step waits. The runs that end for it are found as abandoned by the
// same process and finished, as a server does it, and no recorded step is repeated.
func TestRunsOutliveALock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stone.db")
	db, err := sqlite.Open(file, sqlite.Options{Retry: 100 * time.Millisecond, RetryResults: 500 * time.Millisecond, Lease: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var calls [40]atomic.Int64
	var steps []stone.Ashlar
	for i := range calls {
		steps = append(steps, stone.Func0(fmt.Sprint("step-", i), dag.NewType[int](fmt.Sprint("t", i)), func(context.Context) (int, error) {
			calls[i].Add(1)
			time.Sleep(10 * time.Millisecond)
			return i, nil
		}))
	}
	p := stone.Seq("all", steps...)
	other, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})})
		ended <- err
	}()
	for calls[3].Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, journal.ErrUnavailable) {
		t.Fatalf("the run ends with %v", err)
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	for info, err := range db.Abandoned(t.Context()) {
		if err != nil {
			continue
		}
		if info.State != journal.Interrupted {
			t.Errorf("%s is %s", info.ID, info.State)
		}
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{Resume: true})}); err != nil {
			t.Fatal(err)
		}
		break
	}
	for i := range calls {
		if calls[i].Load() != 1 {
			t.Errorf("step %d was done %d times", i, calls[i].Load())
		}
	}
}
