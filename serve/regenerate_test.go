package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve"
)

// A turn that is asked again while it runs is canceled.
func TestRegenerateWhileRunning(t *testing.T) {
	j := memdb.New(t)
	q := openQuarry(t, serve.Config{Journal: j})
	url := q.URL + "/v1/ui/slow"
	begun := func(r *reply) bool { return r.text() == "" }
	chat(t, "POST", url, saying("one", "m1", "hello"), begun) // stop()
	body := `{"id":"one","trigger":"regenerate-message","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hello"}]}]}`
	chat(t, "POST", url, body, begun)
	chat(t, "POST", url, body, begun)
	running := 0
	runs, err := j.Runs(t.Context(), journal.Query{})
	for _, r := range runs {
		if r.State == journal.Running {
			running++
		}
	}
	if running != 1 || err != nil {
		t.Errorf("%d turns of the conversation run at the same time, want 1", running)
	}
}

// A turn that is asked again, edited or left out while it waits for approval is over: no answer resumes it, through no door.
func TestReplacedTurnIsOver(t *testing.T) {
	const again = `{"id":"chat","trigger":"regenerate-message","messages":[%s{"id":"m1","role":"user","parts":[{"type":"text","text":"buy"}]}]}`
	for name, c := range map[string]struct{ before, body string }{
		"asked again":     {"", fmt.Sprintf(again, "")},
		"edited":          {"", strings.Replace(saying("chat", "m1", "hello"), `"submit-message"`, `"submit-message","messageId":"m1"`, 1)},
		"left out":        {saying("chat", "m0", "hello"), saying("chat", "m2", "hello", "chat-turn-1")},
		"edited, alone":   {saying("chat", "m0", "hello"), `{"id":"chat","messageId":"m1","message":{"id":"m1","role":"user","parts":[{"type":"text","text":"hello"}]}}`},
		"the one answers": {"", saying("chat", "m1", "look")},
	} {
		t.Run(name, func(t *testing.T) {
			overJournals(t, func(t *testing.T, j journal.Journal) {
				q := openQuarry(t, serve.Config{Journal: j, Access: byHeader{}})
				url := q.URL + "/v1/ui/mason"
				if c.before != "" {
					chat(t, "POST", url, c.before, whole, "X-Tenant", "acme")
				}
				old := chat(t, "POST", url, saying("chat", "m1", "buy"), whole, "X-Tenant", "acme")
				next := chat(t, "POST", url, c.body, whole, "X-Tenant", "acme")
				if old.question == "" || next.status != http.StatusOK || next.message == old.message || c.before != "" && next.text() != "3: hello" {
					t.Fatalf("%+v, then %+v", old, next)
				}
				run, path, _ := strings.Cut(old.question, "~")
				path, _, _ = strings.Cut(path, "#")
				for _, answer := range [][3]string{
					{"POST", url, approving("chat", old.message, old.question)},
					{"POST", q.URL + "/v1/runs/" + run + "/answers", fmt.Sprintf(`{"question":%q,"response":"yes"}`, path)},
				} {
					if r := chat(t, answer[0], answer[1], answer[2], whole, "X-Tenant", "acme"); r.status != http.StatusConflict || r.problem != "the question is answered" {
						t.Errorf("%s: %+v", answer[1], r)
					}
				}
				if info, err := j.Find(t.Context(), "acme."+run); info.State != journal.Canceled || err != nil || q.bought.Load() > 0 {
					t.Errorf("the run is %s, %d were bought", info.State, q.bought.Load())
				}
			})
		})
	}
}

// A client that closes its connection cancels the run if it says so and may.
func TestStopCancels(t *testing.T) {
	for name, c := range map[string]struct {
		headers []string
		want    journal.State
	}{
		"no header":     {nil, journal.Running},
		"another value": {[]string{"Stone-Stop", "leave"}, journal.Running},
		"a viewer":      {[]string{"Stone-Stop", "cancel", "X-Roles", "read"}, journal.Running},
		"the page":      {[]string{"Stone-Stop", "cancel"}, journal.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			j := memdb.New(t)
			q := openQuarry(t, serve.Config{Journal: j, Access: byHeader{}})
			begun := func(r *reply) bool { return r.text() == "" }
			chat(t, "POST", q.URL+"/v1/ui/slow", saying("c", "m1", "hello"), begun)
			chat(t, "GET", q.URL+"/v1/ui/slow/c/stream", "", begun, c.headers...)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if c.want == journal.Running { // a while after the connection
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
			}
			defer cancel()
			info, err := j.Find(t.Context(), "c-turn-1")
			for err == nil && info.State == journal.Running && ctx.Err() == nil {
				time.Sleep(5 * time.Millisecond)
				info, err = j.Find(t.Context(), "c-turn-1")
			}
			if info.State != c.want || err != nil {
				t.Errorf("the run is %s, %v: want %s", info.State, err, c.want)
			}
		})
	}
}
