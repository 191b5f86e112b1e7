//go:build unix

package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/year"
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
		if _, err := db.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Begin(t.Context(), info, dag.DAG{}), db.End(t.Context(), id, journal.Outcome{State: state, Ended: now}), db.Release(id)); err != nil {
			t.Fatal(err)
		}
	}
	put("waits", "page", "", journal.Waiting)
	put("waits-r", "webhook/a2a/receiver", "waits", journal.Done)
	put("old", "page", "", journal.Done)
	put("old-n", "webhook/a2a", "old", journal.Done)
	put("old-r", "webhook/a2a/receiver", "old", journal.Done)
	put("orphan", "webhook/a2a/receiver", "wait", journal.Done) // the beginning of another id
	put("new", "page", "", journal.Done)
	put("new-n", "webhook/a2a", "new", journal.Done)
	put("new-r", "webhook/a2a/receiver", "new", journal.Done)
	for _, c := range []struct{ args, want, left string }{
		{"--keep 1 --dry-run", "orphan", "new-r new-n new orphan old-r old-n old waits-r waits"},
		{"--keep 2", "removed 1 run, kept 11", "new-r new-n new old-r old-n old waits-r waits"},
		{"--keep 1", "removed 4 runs, kept 7", "new-r new-n new waits-r waits"},
		{"--keep 1 --pipeline webhook/a2a", "removed 0 runs, kept 1", "new-r new-n new waits-r waits"},
		{"--keep 0 --pipeline page", "removed 3 runs, kept 1", "new-n waits-r waits"},
		{"--keep 0", "removed 1 run, kept 3", "waits-r waits"},
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

// Of --keep-bytes the oldest ended runs go first, until the rest needs no more. What may not be removed stays, and is said.
func TestCollectBytes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stone.db")
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, id := range []string{"waits", "first", "second", "third"} {
		if err := year.Steps(t.Context(), db, id, 500, 0); err != nil {
			t.Fatal(err)
		}
	}
	_, err = db.Acquire(t.Context(), "waits")
	if err := errors.Join(err, db.Begin(t.Context(), journal.RunInfo{ID: "waits"}, dag.DAG{}), db.End(t.Context(), "waits", journal.Outcome{State: journal.Waiting}), db.Release("waits")); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Ask(t.Context(), journal.Question{Run: "waits", Path: "p", Text: "?"}); err != nil {
		t.Fatal(err)
	}
	used, err := db.Used(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		keep             int64
		want, says, left string
		args             []string
	}{
		{used + 1000, "removed 0 runs, kept 4", "", "third second first waits", nil},
		{used / 20, "removed 0 runs, kept 4", "none of the chosen runs that are left may be removed", "third second first waits", []string{"--keep", "3"}},
		{used - used/5, "removed 1 run, kept 3", "", "third second waits", nil},
		{used / 20, "removed 2 runs, kept 1", "none of the chosen runs that are left may be removed", "waits", nil},
	} {
		var out, errs bytes.Buffer
		cli.Run(t.Context(), cli.Config{
			Parts: parts, Pipeline: cli.FromArgument, Name: "stone", Args: append([]string{"runs", "gc", "--db", file, "--keep-bytes", fmt.Sprint(float64(c.keep)/1000, "KB")}, c.args...),
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		})
		runs, err := db.Runs(t.Context(), journal.Query{})
		var left []string
		for _, r := range runs {
			left = append(left, r.ID)
		}
		if err != nil || !strings.Contains(out.String(), c.want) || !strings.Contains(errs.String(), c.says) || (c.says == "") != (errs.Len() == 0) || strings.Join(left, " ") != c.left {
			t.Errorf("%d bytes of %d: %q, %q, %v; left %q; want %+v", c.keep, used, &out, &errs, err, left, c)
		}
	}
}

// Compressed runs are smaller, and everything reads them: the check, a backup, and what shows a run.
func TestCollectCompress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stone.db")
	stone := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), cli.Config{
			Parts: parts, Pipeline: cli.FromArgument, Name: "stone", Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		})
		if code != 0 {
			t.Errorf("%q: %d, %s", args, code, &errs)
		}
		return out.String()
	}
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	word := dag.NewType[string]("word")
	input, err := word.Append(dag.DAG{}, strings.Repeat("marble and granite ", 500))
	for _, id := range []string{"old", "young"} {
		started := time.Now()
		if id == "old" {
			started = started.Add(-48 * time.Hour)
		}
		_, taken := db.Acquire(t.Context(), id)
		err = errors.Join(err, taken, db.Begin(t.Context(), journal.RunInfo{ID: id, Started: started}, input),
			db.End(t.Context(), id, journal.Outcome{State: journal.Done, Ended: started, DAG: input}), db.Release(id))
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	before := stone("show", "old", "--dag", "--db", file)
	if !strings.Contains(before, "marble and granite") {
		t.Errorf("show --dag: %.200s", before)
	}
	for _, c := range []struct{ args, want string }{
		{"--compress 1d", "compressed 1 run: the contents had 0.0 MB, now 0.0 MB\nremoved 0 runs, kept 2\n"},
		{"--compress 1d", "compressed 0 runs: the contents had 0.0 MB, now 0.0 MB\nremoved 0 runs, kept 2\n"},
		{"--compress 1m --keep 1", "compressed 0 runs: the contents had 0.0 MB, now 0.0 MB\nremoved 1 run, kept 1\n"},
	} {
		if got := stone(append([]string{"runs", "gc", "--db", file}, strings.Fields(c.args)...)...); got != c.want {
			t.Errorf("gc %s: %q, want %q", c.args, got, c.want)
		}
		if c.args == "--compress 1m --keep 1" {
			break
		}
		if got := stone("show", "old", "--dag", "--db", file); got != before {
			t.Errorf("show --dag of a compressed run has another output: %.200s", got)
		}
		copied := filepath.Join(t.TempDir(), "copy.db")
		stone("db", "backup", copied, "--db", file)
		for _, name := range []string{file, copied} {
			if got := stone("db", "check", "--db", name); !strings.Contains(got, "no damage") {
				t.Errorf("db check: %q", got)
			}
		}
		if got := stone("show", "old", "--dag", "--db", copied); got != before {
			t.Errorf("show --dag of a compressed run in a backup has another output: %.200s", got)
		}
	}
}
