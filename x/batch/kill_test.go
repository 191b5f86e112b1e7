package batch_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/test/batchtest"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/x/batch"
)

const victims = 4 // questions

// narrow pays the estimates of the questions and no further one.
var narrow = budget.Shared{Name: "narrow", Limits: budget.Limits{USD: new(victims * 0.0055 / 2)}}

// TestVictim is the process that TestKill kills.
func TestVictim(t *testing.T) {
	url, protocol, _ := strings.Cut(os.Getenv("STONE_BATCH_VICTIM"), " ")
	if url == "" {
		return // TestKill runs it
	}
	db, err := sqlite.Open(os.Getenv("STONE_BATCH_DB"), sqlite.Options{Lease: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run, cfg := config(db, "r")
	run.Recorder = journal.Keep(db, journal.Options{Budgets: []budget.Shared{narrow}})
	result, err := batch.Run(priced(t.Context()), asking(victims, models(url)[protocol]), run, cfg)
	check(t, result, err, victims)
	steps, err := db.Steps(t.Context(), "r")
	_, total := journal.Total(steps)
	now, broken := db.Balance(t.Context(), narrow, time.Now())
	fmt.Printf("cost %.4f %v, the budget has paid %.4f and holds %.4f %v\n", total.USD, err, now.Used.USD, now.Held.USD, broken)
}

// A process is killed before its first request to its provider, and after the provider has carried out each. The next
// one finishes the run with the batch that there is, and pays for no second one. A budget over several runs holds what
// the batch may cost meanwhile.
func TestKill(t *testing.T) {
	need.Time(t)
	for protocol := range models("http://127.0.0.1:1") {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			for kill := 1; ; kill++ {
				// Before a request, what is known is what was known after the one before.
				if kill == 1 {
					killAt(t, protocol, kill, false)
				}
				if !killAt(t, protocol, kill, true) {
					t.Logf("%d requests", kill-1)
					if kill < 5 {
						t.Error("it was hardly killed")
					}
					return
				}
			}
		})
	}
}

// killAt kills a process at a request, and starts another one. It returns false if the first has ended before.
func killAt(t *testing.T, protocol string, kill int, after bool) (killed bool) {
	b := batchtest.New(t, 2)
	defer b.Close()
	db := filepath.Join(t.TempDir(), "stone.db")
	victim := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$")
		cmd.Env = append(os.Environ(), "STONE_BATCH_VICTIM="+b.URL+" "+protocol, "STONE_BATCH_DB="+db)
		return cmd
	}
	first := victim()
	b.Lock()
	b.Met = func(_ http.ResponseWriter, _ *http.Request, n int, now bool) bool {
		if n != kill || now != after {
			return false
		}
		killed = true
		_ = first.Process.Kill()
		return true
	}
	var text bytes.Buffer
	first.Stdout, first.Stderr = &text, &text
	err := first.Start()
	b.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	err = first.Wait()
	b.Lock()
	b.Met = func(http.ResponseWriter, *http.Request, int, bool) bool { return false }
	b.Unlock()
	if !killed {
		if err != nil {
			t.Fatalf("%v\n%s", err, &text)
		}
		return false
	}
	j, err := sqlite.Open(db, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now, err := j.Balance(t.Context(), narrow, time.Now())
	if now.Used.USD != 0 || now.Held.USD < victims*0.005/2 || err != nil || j.Close() != nil {
		t.Errorf("killed at request %d: the budget has paid %v and holds %v, %v", kill, now.Used.USD, now.Held.USD, err)
	}
	out, err := victim().CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("cost %.4f <nil>, the budget has paid %.4[1]f and holds 0.0000 <nil>", victims*usd/2)) {
		t.Errorf("killed at request %d, after it was carried out: %t: %v\n%s", kill, after, err, out)
	}
	if len(b.Batches) != 1 || b.Direct != 0 {
		t.Errorf("killed at request %d, after it was carried out: %t: %d batches, %d direct requests", kill, after, len(b.Batches), b.Direct)
	}
	return true
}
