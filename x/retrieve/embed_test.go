package retrieve_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/step"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/sqlite"
)

// strict is a server of vectors that refuses some requests.
type strict struct {
	mu       sync.Mutex
	requests int
	texts    int // that it made vectors of
	refuse   func(texts []string) (status int, body string)
}

func (s *strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct{ Input []string }
	_ = json.NewDecoder(r.Body).Decode(&req)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if status, body := s.refuse(req.Input); status != 0 {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return
	}
	s.texts += len(req.Input)
	var data []string
	for i, text := range req.Input {
		data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[1,%d]}`, i, len(text)))
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"data":[`+strings.Join(data, ",")+`]}`)
}

func (s *strict) embedder(t *testing.T) llm.Embedder {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return openai.NewEmbedder(openai.Config{Model: "mini", URL: server.URL, Key: llm.NoKey})
}

func documents(n int) fstest.MapFS {
	files := fstest.MapFS{}
	for i := range n {
		files[fmt.Sprintf("doc%03d.md", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "# Doc %d\n\nText %d.\n", i, i)}
	}
	return files
}

// How many texts, or bytes of them, a server takes at once is found out, and then kept to.
func TestLimitOfEmbedder(t *testing.T) {
	for name, c := range map[string]struct {
		refuse       func(texts []string) (int, string)
		mostRequests int
	}{
		"text-embeddings-inference: 32 texts": {func(texts []string) (int, string) {
			if len(texts) > 32 {
				return 422, `{"error":"batch size 64 > maximum allowed batch size 32","error_type":"Validation"}`
			}
			return 0, ""
		}, 40},
		"DashScope: 10 texts": {func(texts []string) (int, string) {
			if len(texts) > 10 {
				return 400, `{"error":{"code":"InvalidParameter","message":"batch size is invalid, it should not be larger than 10"}}`
			}
			return 0, ""
		}, 160},
		"a proxy: 400 bytes": {func(texts []string) (int, string) {
			if len(strings.Join(texts, "")) > 400 {
				return 413, "payload too large"
			}
			return 0, ""
		}, 120},
	} {
		t.Run(name, func(t *testing.T) {
			s := &strict{refuse: c.refuse}
			x := opened(t, s.embedder(t))
			r := build(t, x, documents(640))
			if r.Bare != 0 || r.Embedded != r.Pieces || len(r.Skipped) != 0 || s.texts != r.Pieces || s.requests > c.mostRequests {
				t.Errorf("%d of %d texts without a vector, skipped %v, after %d requests with %d texts; want at most %d requests", r.Bare, r.Pieces, r.Skipped, s.requests, s.texts, c.mostRequests)
			}
		})
	}
}

// A text that the embedder refuses costs only itself, and is named. Its words are found, and a later run tries it again.
func TestRefusedText(t *testing.T) {
	refuses := true
	s := &strict{refuse: func(texts []string) (int, string) {
		if refuses && strings.Contains(strings.Join(texts, ""), "zzzz") {
			return 400, `{"error":{"message":"the input length exceeds the context length"}}`
		}
		return 0, ""
	}}
	files := documents(100)
	files["bad/dump.md"] = &fstest.MapFile{Data: []byte("# Dump\n\nsingular " + strings.Repeat("zzzz", 300) + "\n")}
	x := opened(t, s.embedder(t))
	for range 2 {
		r := build(t, x, files)
		if r.Bare != 1 || len(r.Skipped) != 1 || r.Skipped[0].File != "bad/dump.md" || !strings.Contains(r.Skipped[0].Why, "lines 3 to 3 have no vector: the embedder refuses the text") ||
			!strings.Contains(r.Skipped[0].Why, "context length") {
			t.Errorf("%+v", r)
		}
	}
	if got := sources(t, x, retrieve.Query{Text: "singular", K: 1}); len(got) != 1 || !strings.HasPrefix(got[0], "bad/dump.md") {
		t.Errorf("found %q", got)
	}
	refuses = false
	if r := build(t, x, files); r.Bare != 0 || r.Embedded != 1 || len(r.Skipped) != 0 {
		t.Errorf("%+v", r)
	}
}

// A server that refuses every text has another reason, with which the run ends.
func TestRefusedAll(t *testing.T) {
	s := &strict{refuse: func([]string) (int, string) { return 400, `{"error":{"message":"no such model"}}` }}
	x := opened(t, s.embedder(t))
	if _, err := stone.Produce(t.Context(), x.Pipeline("index", documents(3)), retrieve.Indexed, stone.Config{}); err == nil || !strings.Contains(err.Error(), "no such model") {
		t.Errorf("%v", err)
	}
}

// A mortal journal dies before it keeps that vectors were made.
type mortal struct{ journal.Journal }

var errDied = errors.New("the process has died")

func (m mortal) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	if key.Kind != "leaf" || key.Name != "vectors" {
		return m.Journal.Do(ctx, key, work)
	}
	return m.Journal.Do(ctx, key, func(ctx context.Context) (step.Record, error) {
		if rec, err := work(ctx); err != nil {
			return rec, err
		}
		return step.Record{}, errDied
	})
}

// The report of a resumed run counts what the process before it has made and paid.
func TestReportAfterDeath(t *testing.T) {
	e, db := new(script.Embedder), memdb.New(t)
	x := opened(t, e)
	run := func(j journal.Journal) (retrieve.Report, error) {
		return stone.Produce(t.Context(), x.Pipeline("index", documents(3)), retrieve.Indexed, stone.Config{RunID: "r", Recorder: journal.Keep(j, journal.Options{})})
	}
	if _, err := run(mortal{db}); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	r, err := run(db)
	if want := texts(e); err != nil || r.Embedded != want || want == 0 || r.Usage == (budget.Usage{}) {
		t.Errorf("%+v, %v: want %d embedded texts, and what they used", r, err, want)
	}
}

// While vectors cannot be stored, as on a full disk, no more are paid for than are on their way.
func TestFullDisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.db")
	store, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	execute := func(text string) {
		t.Helper()
		if _, err := db.ExecContext(context.Background(), text); err != nil {
			t.Fatal(err)
		}
	}
	e := new(script.Embedder)
	x := &retrieve.Index{Store: store, Embedder: e}
	execute("CREATE TRIGGER full BEFORE INSERT ON vectors WHEN (SELECT count(*) FROM vectors) >= 128 BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END")
	files := documents(3000)
	_, err = stone.Produce(t.Context(), x.Pipeline("index", files), retrieve.Indexed, stone.Config{})
	if err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("%v", err)
	}
	const lanes = 8
	if n := texts(e); n > 128+2*lanes*64 {
		t.Errorf("%d texts were paid for, and 128 could be stored: want at most those of %d requests more", n, 2*lanes)
	}
	execute("DROP TRIGGER full")
	before := texts(e)
	if r := build(t, x, files); r.Bare != 0 || texts(e)-before > 3000-128 {
		t.Errorf("%+v, %d texts", r.State, texts(e)-before)
	}
}
