package sqlite

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
)

var release = flag.String("release", "", "write ../../testdata/`VERSION`/resumed.db, which later versions must resume")

// halves is a pipeline that fails once in the middle.
func halves(fail bool, calls *int) stone.Ashlar {
	first, second := dag.NewType[string]("first"), dag.NewType[string]("second")
	return stone.Seq("halves",
		stone.Func0("one", first, func(context.Context) (string, error) { *calls++; return "paid", nil }),
		stone.Func("two", first, second, func(_ context.Context, s string) (string, error) {
			if fail {
				return "", errors.New("the power went")
			}
			return s + " once", nil
		}))
}

// A run that failed under an earlier release resumes, and does nothing again. Its ids stay the same.
func TestResumeOfReleases(t *testing.T) {
	calls := 0
	if *release != "" {
		db := open(t, filepath.Join(t.TempDir(), "stone.db"), Options{})
		if _, err := stone.Run(t.Context(), halves(true, &calls), stone.Config{RunID: "run", Recorder: journal.Keep(db, journal.Options{})}); err == nil {
			t.Fatal("the run has not failed")
		}
		if _, err := db.Backup(t.Context(), filepath.Join("../../testdata", *release, "resumed.db")); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob("../../testdata/[0-9]*/resumed.db")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v: want a file for each release", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(memdir.New(t), "stone.db")
		writeFile(t, file, string(text))
		db := open(t, file, Options{})
		calls = 0
		result, err := stone.Run(t.Context(), halves(false, &calls), stone.Config{RunID: "run", Recorder: journal.Keep(db, journal.Options{})})
		if err != nil || calls != 0 {
			t.Errorf("%s: %d calls of a recorded step, %v", name, calls, err)
			continue
		}
		if got, want := result.Node.ID().String()[:12], "3b11b36f1d30"; string(result.Node.Content()) != `"paid once"` || got != want {
			t.Errorf("%s: node %s %s, want %s", name, got, result.Node.Content(), want)
		}
	}
}

// The page of formats and the page about upgrades have the present version.
func TestVersionOfPages(t *testing.T) {
	for page, want := range map[string]string{
		"reference/formats.md": fmt.Sprintf("`application_id` is 0x%x | %d |", application, version), "upgrade.md": fmt.Sprintf("has schema %d, this program knows %d`", version, released),
	} {
		if text, err := os.ReadFile("../../docs/" + page); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("docs/%s does not say %q, %v", page, want, err)
		}
	}
}
