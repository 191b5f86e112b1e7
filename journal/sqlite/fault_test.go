package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, file string)
		want string
	}{
		{"no database", func(t *testing.T, file string) { writeFile(t, file, strings.Repeat("some text ", 500)) }, "is no SQLite database: name another file"},
		{"cut off", func(t *testing.T, file string) {
			open(t, file, Options{}).Close()
			if err := os.Truncate(file, 4096); err != nil {
				t.Fatal(err)
			}
		}, "is damaged: restore a copy, or move it away to start again"},
		{"another program's", func(t *testing.T, file string) { execute(t, file, "CREATE TABLE t (c)") }, "belongs to another program: name another file"},
		{"newer", func(t *testing.T, file string) {
			open(t, file, Options{}).Close()
			execute(t, file, "PRAGMA user_version = 9")
		}, fmt.Sprintf("has schema 9, this program knows %d: use the version that made it, or a newer one", version)},
		{"a directory", func(t *testing.T, file string) {
			if err := os.Mkdir(file, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "cannot be opened: check that its directory exists"},
		{"new and locked", func(t *testing.T, file string) {
			execute(t, file, walMode)
			lock(t, file)
		}, "is locked: end the program that holds it, or try again later"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(memdir.New(t), "stone.db")
			c.make(t, file)
			db, err := Open(file, Options{Retry: 50 * time.Millisecond})
			if err == nil {
				db.Close()
			}
			wantError(t, err, file, c.want)
		})
	}
	missing := filepath.Join(t.TempDir(), "missing", "stone.db")
	_, err := Open(missing, Options{})
	wantError(t, err, missing, "check that its directory exists")
	_, err = Open(missing, Options{Lease: -1})
	wantError(t, err, missing, "must not be negative")
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q, want one line with %q", err, part)
		}
	}
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// execute runs a statement over the file with a connection of its own.
func execute(t testing.TB, file, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

// lock takes the write lock until the returned function is called.
func lock(t *testing.T, file string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", file+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	unlock = func() {
		_ = tx.Rollback() // the second time it is already done
		db.Close()
	}
	t.Cleanup(unlock)
	return unlock
}

// full leaves the file no room to grow, as a full disk does.
func full(t *testing.T, db *DB) (undo func()) {
	t.Helper()
	limit := func(pages int) {
		if _, err := db.file.conn.ExecContext(context.Background(), fmt.Sprint("PRAGMA max_page_count = ", pages)); err != nil {
			t.Error(err)
		}
	}
	limit(1) // the smallest that the file already has
	return func() { limit(1 << 30) }
}

// A failed write is retried, the work is not.
func TestFailedWrites(t *testing.T) {
	for _, c := range []struct {
		name string
		stop func(*testing.T, *DB) (undo func())
		want string
	}{
		{"locked", func(t *testing.T, db *DB) func() { return lock(t, db.file.name) }, "is locked: end the program"},
		{"disk full", full, "has no space left: free some space on its disk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := open(t, filepath.Join(memdir.New(t), "stone.db"), Options{Retry: 100 * time.Millisecond, RetryResults: 100 * time.Millisecond, Lease: time.Minute})
			do(t, db, stepKey("r", 1))
			var calls atomic.Int64
			var undo func()
			_, err := db.Do(t.Context(), stepKey("r", 2), func(ctx context.Context) (step.Record, error) {
				undo = c.stop(t, db)
				calls.Add(1)
				return step.Record{Content: []byte(`"` + strings.Repeat("x", 100_000) + `"`)}, nil
			})
			if wantError(t, err, db.file.name, c.want); !errors.Is(err, journal.ErrUnavailable) {
				t.Errorf("%v is not journal.ErrUnavailable", err)
			}
			if _, err = db.Do(t.Context(), stepKey("r", 2), work(&calls)); err == nil {
				t.Error("a result that is not on the disk was acknowledged")
			}
			undo()
			rec, err := db.Do(t.Context(), stepKey("r", 2), work(&calls))
			for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); {
				rec, err = db.Do(t.Context(), stepKey("r", 2), work(&calls))
			}
			if err != nil || !rec.Replayed || calls.Load() != 1 {
				t.Errorf("afterwards: replayed %t after %d calls of work, %v; want true after 1", rec.Replayed, calls.Load(), err)
			}
		})
	}
}

// Without an intent on the disk no work starts.
func TestNoWorkWithoutIntent(t *testing.T) {
	db := open(t, filepath.Join(memdir.New(t), "stone.db"), Options{Retry: 50 * time.Millisecond, RetryResults: 50 * time.Millisecond})
	do(t, db, stepKey("r", 1))
	undo := lock(t, db.file.name)
	var calls atomic.Int64
	_, err := db.Do(t.Context(), stepKey("r", 2), work(&calls))
	if wantError(t, err, "is locked"); calls.Load() > 0 {
		t.Error("work was called although its intent could not be written")
	}
	if again := db.file.Explain(err); again.Error() != err.Error() {
		t.Errorf("explained twice: %v", again)
	}
	undo()
}

func TestCloseTellsOfLostResults(t *testing.T) {
	db, err := Open(filepath.Join(memdir.New(t), "stone.db"), Options{Retry: 50 * time.Millisecond, RetryResults: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Do(t.Context(), stepKey("r", 1), func(context.Context) (step.Record, error) {
		full(t, db)
		return step.Record{Content: []byte(`"` + strings.Repeat("x", 100_000) + `"`)}, nil
	})
	wantError(t, err, "no space left")
	wantError(t, db.Close(), "lost results: 1", "no space left")
}

func TestChangedRecordIsRefused(t *testing.T) {
	for _, column := range []string{"content", "head", "parents"} {
		t.Run(column, func(t *testing.T) {
			file := filepath.Join(memdir.New(t), "stone.db")
			db := open(t, file, Options{})
			say := stone.Func0("say", draft, func(context.Context) (string, error) { return "hello", nil })
			result, err := stone.Run(t.Context(), say, stone.Config{RunID: "r", Recorder: db})
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			execute(t, file, "UPDATE records SET "+column+" = CASE typeof("+column+") WHEN 'text' THEN replace("+column+", 'leaf', 'tree') ELSE CAST('\"hallo\"' AS BLOB) END WHERE node IS NOT NULL")
			db = open(t, file, Options{})
			_, err = stone.Run(t.Context(), say, stone.Config{RunID: "r", Recorder: db})
			node := result.Node.ID().String()[:12]
			wantError(t, err, file, `run "r"`, "the record of say", "node "+node, "was changed after it was written")
			_, err = db.DAG(t.Context(), "r")
			var damage *journal.DamageError
			if !errors.As(err, &damage) || damage.Run != "r" || damage.Node != result.Node.ID().String() {
				t.Errorf("DAG: %v, want a DamageError that names the run and the node", err)
			}
		})
	}
}

func TestDamagedPages(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	db := open(t, file, Options{})
	for n := range byte(100) {
		do(t, db, stepKey("r", n+1))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(bytes.Repeat([]byte("rubbish "), int(info.Size()-8*8192)/8), 8*8192) // after the roots of the tables
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = Open(file, Options{})
	wantError(t, err, file, "is damaged: restore a copy")
}

// It runs as another user, since root may write everything.
func TestReadOnly(t *testing.T) {
	if os.Geteuid() == 0 && os.Getenv(jobUser) == "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, "-test.run=^TestReadOnly$")
		cmd.Env = append(os.Environ(), jobUser+"=65534")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "stone.db")
	made, err := Open(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	do(t, made, stepKey("r", 1))
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(file, 0o400), os.Chmod(dir, 0o500)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	db, err := Open(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if info, err := db.Find(t.Context(), "r"); err != nil || info.State != journal.Interrupted {
		t.Errorf("Find on a file that may only be read: %+v, %v", info, err)
	}
	if steps, err := db.Steps(t.Context(), "r"); err != nil || len(steps) != 1 {
		t.Errorf("Steps on a file that may only be read: %+v, %v", steps, err)
	}
	_, err = db.Acquire(t.Context(), "r")
	wantError(t, err, file, "cannot be written: check the permissions of the file and of its directory")
}

// Reading does not wait for the writer.
func TestReadLocked(t *testing.T) {
	db := open(t, filepath.Join(memdir.New(t), "stone.db"), Options{})
	do(t, db, stepKey("r", 1))
	lock(t, db.file.name)
	other := open(t, db.file.name, Options{Retry: time.Millisecond})
	if steps, err := other.Steps(t.Context(), "r"); err != nil || len(steps) != 1 {
		t.Errorf("Steps of a locked file: %+v, %v", steps, err)
	}
	if runs, err := other.Runs(t.Context(), journal.Query{}); err != nil || len(runs) != 1 {
		t.Errorf("Runs of a locked file: %+v, %v", runs, err)
	}
}
