package retrieve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/journal"
	journals "github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/sqlite"
)

const (
	sections = 1300 // texts of the victim's folder
	atOnce   = 8    // requests of a pipeline
	requests = (sections + 63) / 64
)

func sectioned() fstest.MapFS {
	files := fstest.MapFS{}
	for i := range sections / 20 {
		var text strings.Builder
		for j := range 20 {
			fmt.Fprintf(&text, "# Section %d of %d\n\nText %d.\n\n", j, i, 20*i+j)
		}
		files[fmt.Sprintf("%d.md", i)] = &fstest.MapFile{Data: []byte(text.String())}
	}
	return files
}

// TestVictim is the process that TestKill kills.
func TestVictim(t *testing.T) {
	url, dir := os.Getenv("STONE_INDEX_VICTIM"), os.Getenv("STONE_INDEX_DIR")
	if url == "" {
		return // TestKill runs it
	}
	db, err := journals.Open(filepath.Join(dir, "runs.db"), journals.Options{Lease: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	store, err := sqlite.Open(filepath.Join(dir, "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	x := &retrieve.Index{Store: store, Embedder: openai.NewEmbedder(openai.Config{Model: "m", URL: url, Key: llm.NoKey})}
	run := os.Getenv("STONE_INDEX_RUN")
	_, err = db.Find(t.Context(), run)
	r, err := stone.Produce(t.Context(), x.Pipeline("index", sectioned()), retrieve.Indexed, stone.Config{
		RunID: run, Recorder: journal.Keep(db, journal.Options{Resume: err == nil}),
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("documents %d bare %d\n", r.Documents, r.Bare)
}

// ledger is the provider. It notes which texts it has made vectors of.
type ledger struct {
	sync.Mutex
	script.Embedder
	n      int // requests
	billed map[string]int
	met    func(n int, carried bool)
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var asked struct{ Input []string }
	if err != nil || json.Unmarshal(body, &asked) != nil {
		return // the process was killed meanwhile
	}
	l.Lock()
	l.n++
	n := l.n
	l.met(n, false)
	for _, text := range asked.Input {
		l.billed[text]++
	}
	l.met(n, true)
	l.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	l.Embedder.ServeHTTP(w, r)
}

// A process is killed before and after its provider has carried out each of its requests, and at random moments. The
// next one, which resumes the run or starts another one, finishes the index. No text is billed twice except texts in requests that
// were on their way.
func TestKill(t *testing.T) {
	need.Time(t)
	for kill := 1; kill <= requests; kill += 5 {
		for _, carried := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/%t", kill, carried), func(t *testing.T) {
				t.Parallel()
				var first *exec.Cmd
				killed := kills(t, kill%2 == 0, func(cmd *exec.Cmd) { first = cmd }, func(n int, after bool) {
					if n == kill && after == carried {
						_ = first.Process.Kill()
						time.Sleep(50 * time.Millisecond) // a signal takes a moment
					}
				})
				if !killed {
					t.Error("it was not killed")
				}
			})
		}
	}
	for i := range 10 {
		t.Run(fmt.Sprintf("random/%d", i), func(t *testing.T) {
			t.Parallel()
			kills(t, i%2 == 0, func(cmd *exec.Cmd) {
				time.AfterFunc(time.Duration(rand.IntN(1000))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			}, func(int, bool) {})
		})
	}
}

// kills starts a process, and another one when it has died. It reports whether the first died early.
func kills(t *testing.T, resume bool, started func(*exec.Cmd), met func(n int, carried bool)) bool {
	l := &ledger{billed: map[string]int{}, met: met}
	server := httptest.NewServer(l)
	defer server.Close()
	dir := t.TempDir()
	victim := func(run string) (*exec.Cmd, *bytes.Buffer) {
		cmd, text := exec.Command(os.Args[0], "-test.run=^TestVictim$"), new(bytes.Buffer)
		cmd.Env = append(os.Environ(), "STONE_INDEX_VICTIM="+server.URL, "STONE_INDEX_DIR="+dir, "STONE_INDEX_RUN="+run)
		cmd.Stdout, cmd.Stderr = text, text
		return cmd, text
	}
	first, text := victim("first")
	l.Lock()
	err := first.Start()
	if err == nil {
		started(first)
	}
	l.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	killed := first.Wait() != nil
	l.Lock()
	before := l.n
	l.met = func(int, bool) {}
	l.Unlock()
	run := "second"
	if resume {
		run = "first"
	}
	if !killed && resume {
		return killed
	}
	second, said := victim(run)
	if err := second.Run(); err != nil || !strings.Contains(said.String(), fmt.Sprintf("documents %d bare 0", sections/20)) {
		t.Fatalf("%v\n%s\n%s", err, text, said)
	}
	l.Lock()
	defer l.Unlock()
	again := 0
	for _, n := range l.billed {
		again += n - 1
	}
	if len(l.billed) != sections || again > 64*atOnce {
		t.Errorf("%d texts were billed, %d of them again after %d requests: want %d, and at most those of %d requests again", len(l.billed), again, before, sections, atOnce)
	}
	if !killed && again > 0 {
		t.Errorf("%d texts were billed again, and the first process had ended", again)
	}
	t.Logf("%d requests, then %d; %d texts billed again", before, l.n-before, again)
	return killed
}
