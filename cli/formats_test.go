package cli_test

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/x/cel"
)

var update = flag.Bool("update", false, "write what commands print into the files that scripts compare it with")

// stoneIn runs a command line, and returns its output.
func stoneIn(t *testing.T, line string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), cli.Config{Name: "stone", Pipeline: cli.FromArgument, Parts: []cli.Part{cel.Part}, Args: strings.Fields(line), Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr})
	return stdout.String(), stderr.String(), code
}

// writeFormats writes the files of this version: a finished run with its trace and recording, and one that waits.
func writeFormats(t *testing.T, folder string) {
	t.Helper()
	from, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(os.TempDir(), "stone-0.1.0") // which the files name
	if err := os.MkdirAll(filepath.Join(dir, ".stone"), 0o700); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	copyFile := func(from, to string) {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copyFile(filepath.Join(from, "plan.edn"), filepath.Join(dir, "plan.edn"))
	copyFile(filepath.Join(from, "stone.edn"), filepath.Join(dir, ".stone/stone.edn"))
	listener, err := net.Listen("tcp", "127.0.0.1:18097") // as the configuration says
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, `"rain in the evening"`)
	})}
	go server.Serve(listener)
	defer server.Close()
	t.Chdir(dir)
	t.Setenv("STONE_TRUST", "1")
	t.Setenv("STONE_LOG_LEVEL", "debug")
	for _, line := range []string{
		"run -q plan.edn --grant net --bind city=Graz --id done --label team=a --trace trace.jsonl --record recording.jsonl",
		"answer done 1 yes",
		"resume -q done --trace trace.jsonl",
		"run -q plan.edn --grant net --bind city=Graz --id waiting",
		"db backup copy.db",
	} {
		if _, errs, code := stoneIn(t, line); code != cli.Done && !strings.HasPrefix(line, "run ") {
			t.Fatalf("stone %s: exit code %d, %s", line, code, errs)
		}
	}
	copyFile("copy.db", filepath.Join(from, "stone.db"))
	copyFile("trace.jsonl", filepath.Join(from, "trace.jsonl"))
	copyFile("recording.jsonl", filepath.Join(from, "recording.jsonl"))
}

// Every version reads what version 0.1.0 wrote: see docs/reference/formats.md. Once it is released, these files are never
// changed.
func TestFormatsOfReleases(t *testing.T) {
	if *update {
		t.Run("update", func(t *testing.T) { writeFormats(t, "../testdata/0.1.0") })
	}
	folders, err := filepath.Glob("../testdata/[0-9]*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("%q, %v: want a folder for each release whose formats are read", folders, err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			dir := t.TempDir()
			for from, to := range map[string]string{"stone.edn": ".stone/stone.edn", "stone.db": ".stone/stone.db", "plan.edn": "plan.edn", "trace.jsonl": "trace.jsonl", "recording.jsonl": "recording.jsonl"} {
				text, err := os.ReadFile(filepath.Join(folder, from))
				if err == nil {
					err = os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o777)
				}
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, to), text, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			database, err := os.ReadFile(filepath.Join(dir, ".stone/stone.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			t.Setenv("STONE_TRUST", "1")
			for _, step := range []struct{ line, want string }{
				{"db check", " records, no damage\n"},
				{"db backup copy.db", "copied .stone/stone.db to copy.db"},
				{"db check --db copy.db", " records, no damage\n"},
				{"runs --label team=a", " done "},
				{"show done", "✓ weather "},
				{"export done --as dag", `"rain in the evening"`},
				{"answer waiting 1 no", ""},
				{"runs --state answered", "waiting "}, // package sqlite tests that it resumes
				{"validate plan.edn --grant net", "Plan is valid"},
				{"run -q plan.edn --grant net --bind city=Graz --replay recording.jsonl --id again --reuse=done", ""},
				{"answer again 1 yes", ""},
				{"resume -q again", "\"sizes\": [\n    1,\n    2\n  ],\n  \"weather\": \"rain in the evening\""},
				{"trace tally trace.jsonl", "17  ashlar-end"},
			} {
				out, errs, code := stoneIn(t, step.line)
				if want := cli.Done; code != want && !strings.Contains(step.line, "--id again") || !strings.Contains(out, step.want) {
					t.Errorf("stone %s: exit code %d\n%s%s\nwant %q", step.line, code, out, errs, step.want)
				}
				if strings.HasPrefix(step.line, "db ") {
					if file, err := os.ReadFile(".stone/stone.db"); err != nil || !bytes.Equal(file, database) {
						t.Errorf("%s changed the file, %v", step.line, err)
					}
				}
				if step.line == "db backup copy.db" {
					const version = 60 // where SQLite has it
					if file, err := os.ReadFile("copy.db"); err != nil || !bytes.Equal(file[version:version+4], database[version:version+4]) {
						t.Errorf("the copy has another version, %v", err)
					}
				}
			}
		})
	}
}
