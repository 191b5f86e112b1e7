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

// Receivers and notes of batches stay as long as their run, and neither they nor notices count for --keep.
func TestCollectParts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stone.db")
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now := time.Now()
	put := func(id, pipeline, of string, state journal.State) {
		now = now.Add(time.Second)
		info := journal.RunInfo{ID: id, Pipeline: pipeline, Started: now}
		if of != "" {
			info.Labels = map[string]string{"receives": of}
		}
		if pipeline == "batches" {
			info.Labels = map[string]string{"batches-of": of}
		}
		if _, err := db.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Begin(t.Context(), info, dag.DAG{}), db.End(t.Context(), id, journal.Outcome{State: state, Ended: now}), db.Release(id)); err != nil {
			t.Fatal(err)
		}
	}
	put("waits", "page", "", journal.Waiting)
	put("waits-r", "webhook/a2a/receiver", "waits", journal.Done)
	put("waits.batches", "batches", "waits", journal.Done)
	put("old", "page", "", journal.Done)
	put("old-n", "webhook/a2a", "old", journal.Done)
	put("old-r", "webhook/a2a/receiver", "old", journal.Done)
	put("old.batches", "batches", "old", journal.Done)
	put("orphan", "webhook/a2a/receiver", "wait", journal.Done) // the beginning of another id
	put("new", "page", "", journal.Done)
	put("new-n", "webhook/a2a", "new", journal.Done)
	put("new-r", "webhook/a2a/receiver", "new", journal.Done)
	put("new.batches", "batches", "new", journal.Done)
	for _, c := range []struct{ args, want, left string }{
		{"--keep 1 --dry-run", "orphan", "new.batches new-r new-n new orphan old.batches old-r old-n old waits.batches waits-r waits"},
		{"--keep 2", "removed 1 run, kept 11", "new.batches new-r new-n new old.batches old-r old-n old waits.batches waits-r waits"},
		{"--keep 1", "removed 4 runs, kept 7", "new.batches new-r new-n new waits.batches waits-r waits"},
		{"--keep 1 --pipeline webhook/a2a", "removed 0 runs, kept 1", "new.batches new-r new-n new waits.batches waits-r waits"},
		{"--keep 0 --pipeline page", "removed 3 runs, kept 1", "new-n waits.batches waits-r waits"},
		{"--keep 0", "removed 1 run, kept 3", "waits.batches waits-r waits"},
		{"--keep 0 --resumable", "removed 3 runs, kept 0", ""},
	} {
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), cli.Config{
			Parts: parts, Pipeline: cli.FromArgument, Name: "stone", Args: append([]string{"runs", "gc", "--db", file}, strings.Fields(c.args)...),
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		})
		if code != 0 || !strings.Contains(out.String(), c.want) {
			t.Errorf("gc %s: %d, %q, want %q; %s", c.args, code, out.String(), c.want, errs.String())
		}
		all, err := db.Runs(t.Context(), journal.Query{})
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, r := range all {
			left = append(left, r.ID)
		}
		if got := strings.Join(left, " "); got != c.left {
			t.Errorf("gc %s leaves %s, want %s", c.args, got, c.left)
		}
	}
}

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
