package eval_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/eval"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

// victim evaluates in a directory: it notes the path of every answer that it asks for, and
// writes the report at the end.
func victim(t *testing.T, dir string, cases int) {
	log, err := os.OpenFile(filepath.Join(dir, "asked"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p := stone.Func("reply", asked, reply, func(ctx context.Context, q question) (string, error) {
		if _, err := fmt.Fprintln(log, stone.In(ctx).Path()); err != nil {
			return "", err
		}
		if q.Hard {
			return "?", nil
		}
		return strings.ToUpper(q.Text), nil
	})
	var texts []string
	for i := range cases {
		texts = append(texts, fmt.Sprint("question ", i, strings.Repeat("!", i%3/2)))
	}
	db, err := sqlite.Open(filepath.Join(dir, "stone.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	a, err := eval.Pipeline(t.Context(), eval.Config{Pipeline: p, Data: rows(texts...), Scorers: scorers(t, "exact"), Trials: 3}, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := stone.Run(t.Context(), a, stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report"), []byte(r.Node.JSON()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestKill kills an evaluation at random moments. It asks for no recorded answer again, and its
// report is that of an evaluation that was not killed, to the byte. STONE_KILLS=1 kills one of
// 1,000 cases 100 times.
func TestKill(t *testing.T) {
	cases, kills := 100, 5
	if os.Getenv("STONE_KILLS") != "" {
		cases, kills = 1000, 100
	}
	if dir := os.Getenv("STONE_VICTIM"); dir != "" {
		victim(t, dir, cases)
		return
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	whole, killed := t.TempDir(), t.TempDir()
	run := func(dir string, after time.Duration) (ended bool) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), "STONE_VICTIM="+dir)
		out := new(strings.Builder)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err != nil && !strings.Contains(err.Error(), "killed") {
			t.Fatalf("%v: %s", err, out)
		}
		return err == nil
	}
	began := time.Now()
	if !run(whole, time.Hour) {
		t.Fatal("the whole evaluation did not end")
	}
	took := time.Since(began)
	recorded, ended := map[string]bool{}, false
	for n := 0; !ended; n++ {
		if err := os.RemoveAll(filepath.Join(killed, "asked")); err != nil {
			t.Fatal(err)
		}
		after := time.Hour
		if n < kills {
			after = time.Duration(rand.Int64N(int64(2 * took / time.Duration(kills))))
			if n%2 == 1 { // starting and loading take time too
				after += took / 7
			}
		}
		if ended = run(killed, after); ended {
			t.Logf("ended after %d kills, with %d of %d answers recorded before", n, len(recorded), cases*3)
		}
		data, err := os.ReadFile(filepath.Join(killed, "asked"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for path := range strings.FieldsSeq(string(data)) {
			if recorded[path] {
				t.Errorf("%s was recorded and is asked again", path)
			}
		}
		recorded = recordedAnswers(t, filepath.Join(killed, "stone.db"))
	}
	if len(recorded) != cases*3 {
		t.Errorf("%d recorded answers, want %d", len(recorded), cases*3)
	}
	var reports [2]string
	for i, dir := range []string{whole, killed} {
		data, err := os.ReadFile(filepath.Join(dir, "report"))
		if err != nil {
			t.Fatal(err)
		}
		reports[i] = string(data)
	}
	if reports[0] != reports[1] {
		t.Errorf("the reports differ:\n%s\n%s", reports[0], reports[1])
	}
}

func recordedAnswers(t *testing.T, file string) map[string]bool {
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	steps, err := db.Steps(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	for _, s := range steps {
		if s.Recorded && strings.HasSuffix(s.Path, "/answer/reply") {
			paths[s.Path] = true
		}
	}
	return paths
}
