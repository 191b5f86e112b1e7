package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

// A question of a run that the command started is answered at the server. The run continues there if the server has the same
// pipeline as far as the run has come; otherwise it is left to the command, and the page says so.
func TestAdopt(t *testing.T) {
	asking := func(after string, choices ...string) stone.Ashlar {
		return stone.Seq("page", stone.Ask("approve", dag.Nothing, approval, func(struct{}) string { return "Publish?" }, stone.Choices(append(choices, "yes", "no")...)),
			stone.Func(after, approval, page, func(_ context.Context, a stone.Answer) (string, error) { return "published", nil }))
	}
	for _, tt := range []struct {
		name    string
		serves  stone.Ashlar
		adopts  bool
		state   journal.State
		problem string
	}{
		{"the same", asking("publish"), true, journal.Done, ""},
		{"another directory", asking("publish"), false, journal.Answered, "started by the command in /home/ada/site"},
		{"another pipeline", asking("publish", "later"), true, journal.Answered, ""},
		{"another step after the question", asking("post"), true, journal.Done, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := memdb.New(t)
			_, err := stone.Run(t.Context(), asking("publish"), stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{Source: json.RawMessage(`{"dir":"/home/ada/site","program":"stone"}`)})})
			if !errors.Is(err, kind.Waiting) {
				t.Fatal(err)
			}
			s := serveAll(t, serve.Config{Journal: db, Pipelines: []serve.Pipeline{{Ashlar: tt.serves}}, Adopt: func(info journal.RunInfo) string {
				if tt.adopts {
					return info.Pipeline
				}
				return ""
			}}, func(next http.Handler) http.Handler { return next })
			get := func(path string) string {
				resp, err := http.Get(s.URL + path)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				text, _ := io.ReadAll(resp.Body)
				return string(text)
			}
			if said := strings.Contains(get("/runs/r"), "was started by the command in <code>/home/ada/site</code>"); said == tt.adopts {
				t.Errorf("the page says who started the run: %v, want %v", said, !tt.adopts)
			}
			c := &api.Client{URL: s.URL}
			if _, err := c.Answer(t.Context(), "r", api.Answer{Question: "approve", Response: "yes"}); err != nil {
				t.Fatal(err)
			}
			if tt.state == journal.Done {
				if run, err := c.Result(t.Context(), "r"); err != nil || run.Result == nil || string(run.Result.Content) != `"published"` {
					t.Error(run, err)
				}
			}
			info, err := db.Find(t.Context(), "r")
			for end := time.Now().Add(time.Minute); err == nil && info.State != tt.state && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				info, err = db.Find(t.Context(), "r") // the server tries to resume it
			}
			if err != nil || info.State != tt.state || !strings.Contains(string(info.Source), "ada/site") {
				t.Errorf("got %s %s %v, want %s", info.State, info.Source, err, tt.state)
			}
			_, err = c.Resume(t.Context(), "r", api.Resume{})
			if tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)) {
				t.Errorf("resume: got %v, want %s", err, tt.problem)
			}
		})
	}
}
