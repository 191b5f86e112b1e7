//go:build unix

package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

// A run whose process died while it started can be continued with resume, and with the same command line. A run whose input an
// older version lost can be continued only with the same command line.
func TestStartOver(t *testing.T) {
	word := dag.NewType[string]("word")
	worked := filepath.Join(t.TempDir(), "log")
	p := stone.Func("log", word, dag.NewType[string]("told"), func(_ context.Context, word string) (string, error) {
		f, err := os.OpenFile(worked, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		_, err = f.WriteString(word + "\n")
		return word, errors.Join(err, f.Close())
	})
	for name, c := range map[string]struct {
		recorded bool
		args     []string
		want     string // the error; empty for none
	}{
		"resume":              {true, []string{"resume", "r"}, ""},
		"run":                 {true, []string{"run", "--id", "r", "--input", `"hello"`}, ""},
		"run other arguments": {true, []string{"run", "--id", "r", "--input", `"hello"`, "--max-usd", "1"}, "run r already exists and is interrupted"},
		"run another input":   {true, []string{"run", "--id", "r", "--input", `"bye"`}, "the input changed"},
		"resume, lost":        {false, []string{"resume", "r"}, "the input of the run is not recorded: start the run again"},
		"run, lost":           {false, []string{"run", "--id", "r", "--input", `"hello"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			file := filepath.Join(dir, "x.db")
			begin(t, file, p, word, c.recorded)
			_ = os.Remove(worked)
			code, errs := command(p, append(c.args, "-q", "--db", file)...)
			log, _ := os.ReadFile(worked)
			if c.want == "" && (code != cli.Done || string(log) != "hello\n") {
				t.Errorf("exit code %d, worked %q\n%s", code, log, errs)
			}
			if c.want != "" && (code == cli.Done || len(log) > 0 || !strings.Contains(errs, c.want) || strings.Contains(errs, "to continue:")) {
				t.Errorf("exit code %d, worked %q, %s\nwant %s", code, log, errs, c.want)
			}
		})
	}
}

// begin starts a run with the input "hello" and leaves it, as a process does that dies.
func begin(t *testing.T, file string, p stone.Ashlar, word dag.Type[string], recorded bool) {
	t.Helper()
	input, err := word.Append(dag.DAG{}, "hello")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	info := journal.RunInfo{
		ID: "r", Pipeline: "log", Fingerprint: p.Fingerprint(), Shape: journal.Shape(p), Started: time.Now(),
		Source: []byte(`{"dir":"` + dir + `","program":"prog"}`), Input: dag.Everything.Queries()[0].Digest(input, false),
	}
	if !recorded {
		input = dag.DAG{}
	}
	_, err = db.Acquire(t.Context(), "r")
	if err := errors.Join(err, db.Begin(t.Context(), info, input), db.Release("r"), db.Close()); err != nil {
		t.Fatal(err)
	}
}
