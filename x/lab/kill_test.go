package lab_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/x/eval"
)

// victim evaluates the recorded runs of a database. Its server writes each request into a ledger.
func victim(t *testing.T, dir string) {
	db, err := sqlite.Open(filepath.Join(dir, "stone.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ledger, err := os.OpenFile(filepath.Join(dir, "ledger"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk("Answer kindly.")
	d.id, d.hear = "lab", func(text string) {
		_, _ = fmt.Fprintln(ledger, text)
		time.Sleep(3 * time.Millisecond)
	}
	data, err := json.Marshal(d.evaluate(t, db, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestKill kills an evaluation of recorded runs. No request is sent again whose answer is recorded, and the report equals the
// report without a kill.
func TestKill(t *testing.T) {
	if dir := os.Getenv("STONE_LAB_VICTIM"); dir != "" {
		victim(t, dir)
		return
	}
	need.Time(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "stone.db")
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	billing, _ := newDesk("Answer.").record(t, db, 200, nil)
	whole := newDesk("Answer kindly.").evaluate(t, db, nil)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	paid, kills := map[string]bool{}, 0
	for ended := false; !ended; {
		if err := os.RemoveAll(filepath.Join(dir, "ledger")); err != nil {
			t.Fatal(err)
		}
		after := 2 * billing // requests
		if kills < 4 {
			after = billing / 5
		}
		if ended = runVictim(t, dir, after); !ended {
			kills++
		}
		data, _ := os.ReadFile(filepath.Join(dir, "ledger")) // it may have asked nothing
		for text := range strings.FieldsFuncSeq(string(data), func(r rune) bool { return r == '\n' }) {
			if paid[text] {
				t.Errorf("%s was paid for and is asked again", text)
			}
		}
		paid = recorded(t, file)
	}
	if kills == 0 || len(paid) != billing {
		t.Errorf("%d kills, %d requests are recorded, want %d", kills, len(paid), billing)
	}
	data, err := os.ReadFile(filepath.Join(dir, "report"))
	if err != nil {
		t.Fatal(err)
	}
	var got eval.Report
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole.Recorded, got.Recorded); diff != "" {
		t.Error(diff)
	}
	if a, b := whole.Text(), got.Text(); a != b {
		t.Errorf("without a kill\n%s\nwith %d kills\n%s", a, kills, b)
	}
}

func runVictim(t *testing.T, dir string, after int) (ended bool) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), "STONE_LAB_VICTIM="+dir)
	out := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case err := <-done:
			if err != nil && !strings.Contains(err.Error(), "killed") {
				t.Fatalf("%v: %s", err, out)
			}
			return err == nil
		case <-time.After(time.Millisecond):
			if data, _ := os.ReadFile(filepath.Join(dir, "ledger")); strings.Count(string(data), "\n") >= after {
				_ = cmd.Process.Kill() // or it has ended
			}
		}
	}
}

var answered = regexp.MustCompile(`LETTER \d+`)

// recorded returns the letters whose new answers the evaluation has recorded.
func recorded(t *testing.T, file string) map[string]bool {
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all := map[string]bool{}
	for s, err := range db.EachStep(t.Context(), "lab") {
		if err != nil {
			t.Fatal(err)
		}
		if !s.Recorded || s.Kind != "step" || s.Meta[terms.Request] == "" || s.Meta[terms.From] != "" {
			continue
		}
		rec, err := db.Record(t.Context(), "lab", s.Path, "step")
		if err != nil {
			t.Fatal(err)
		}
		all[answered.FindString(string(rec.Content))] = true
	}
	return all
}
