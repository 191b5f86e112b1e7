//go:build unix

package cli_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/year"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

// An inner run is done before its outer one, which would do it again, and pay again, if it continued without it.
func TestCollectInner(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stone.db")
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, outer := range []struct {
		id    string
		state journal.State
	}{{"drained", journal.Drained}, {"done", journal.Done}} {
		for _, id := range []string{outer.id, outer.id + "/1"} {
			_, err := db.Acquire(t.Context(), id)
			if err = errors.Join(err, db.Begin(t.Context(), journal.RunInfo{ID: id, Pipeline: "p", Started: time.Now()}, dag.DAG{})); err != nil {
				t.Fatal(err)
			}
		}
		err := errors.Join(db.End(t.Context(), outer.id+"/1", journal.Outcome{State: journal.Done}), db.End(t.Context(), outer.id, journal.Outcome{State: outer.state}))
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ args, want string }{{"", "removed 2 runs, kept 2"}, {"--resumable", "removed 2 runs, kept 0"}} {
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), cli.Config{
			Parts: parts, Pipeline: cli.FromArgument, Name: "stone", Args: append([]string{"runs", "gc", "--keep", "0", "--db", file}, strings.Fields(c.args)...),
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		})
		if code != 0 || strings.TrimSpace(out.String()) != c.want {
			t.Errorf("gc %s: %d, %q, want %q; %s", c.args, code, out.String(), c.want, errs.String())
		}
	}
}

// Runs of several pages are removed, and those that are to be kept stay.
func TestCollectPages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stone.db")
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := year.Fill(t.Context(), db, 2400); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--keep 1000 --pipeline pipeline-7", "removed 0 runs, kept 48"},
		{"--keep 8 --pipeline pipeline-7", "removed 40 runs, kept 8"},
		{"--keep 100 --state failed", "removed 293 runs, kept 100"},
		{"--keep 10", "removed 2056 runs, kept 11"}, // one waits
	} {
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), cli.Config{
			Parts: parts, Pipeline: cli.FromArgument, Name: "stone", Args: append([]string{"runs", "gc", "--db", file}, strings.Fields(c.args)...),
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		})
		if code != 0 || strings.TrimSpace(out.String()) != c.want {
			t.Errorf("gc %s: %d, %q, want %q; %s", c.args, code, out.String(), c.want, errs.String())
		}
	}
	if left, err := db.Runs(t.Context(), journal.Query{}); err != nil || len(left) != 11 {
		t.Errorf("%d runs are left, %v", len(left), err)
	}
}
