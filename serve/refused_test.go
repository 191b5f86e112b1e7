package serve_test

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/tool"
)

// desk is a server of an agent that looks something up and then asks before it pays. The next server
// over the journal can have another version of the agent.
type desk struct {
	*house
	journal       journal.Journal
	prompt, looks string // of the next server: the prompt, and the description of look_up
	hooks         []serve.Webhook

	asked, looked, paid atomic.Int32 // what has happened outside

	mu  sync.Mutex
	log []string
}

var settled = dag.NewType[agent.Text]("settled")

func newDesk(t *testing.T, j journal.Journal, hooks ...serve.Webhook) *desk {
	d := &desk{house: &house{T: t}, journal: j, prompt: "Be kind.", looks: "Looks an order up.", hooks: hooks}
	d.open()
	return d
}

func (d *desk) open() {
	type order struct {
		Order int `json:"order"`
	}
	looks := tool.Func("look_up", d.looks, func(context.Context, order) (string, error) {
		d.looked.Add(1)
		return "charged twice", nil
	})
	refund := tool.Func("refund", "Pays money back.", func(context.Context, order) (string, error) {
		d.paid.Add(1)
		return "paid", nil
	})
	model := script.Func(func(_ int, req *llm.Request) script.Answer {
		d.asked.Add(1)
		return []script.Answer{script.Call("look_up", `{"order":7}`), script.Call("refund", `{"order":7}`), script.Text("Paid.")}[len(req.Messages)/2]
	})
	support := agent.New("support", settled, model, agent.Config{
		System: agent.Say(d.prompt), User: agent.Say("I paid twice."), Use: []agent.Middleware{looks, tool.Confirm(refund, tool.Ask)},
	})
	d.Server = serveAll(d, serve.Config{Journal: d.journal, Access: roles{}, Webhooks: d.hooks, Log: slog.New(&lines{desk: d}), Pipelines: []serve.Pipeline{{Name: "support", Ashlar: support}}})
}

// again stops the server, and starts one of another version.
func (d *desk) again(prompt, looks string) {
	d.Stop()
	d.prompt, d.looks = cmp.Or(prompt, d.prompt), cmp.Or(looks, d.looks)
	d.open()
}

// waits starts the run a and waits for its question.
func (d *desk) waits() {
	d.Helper()
	d.want("PUT", "/v1/runs/a", `{"pipeline":"support"}`, 201, "")
	d.want("GET", "/v1/runs/a/result?wait=30s", "", 202, `"state":"waiting"`)
	d.effects(2, 1, 0)
}

func (d *desk) effects(asked, looked, paid int32) {
	d.Helper()
	if a, l, p := d.asked.Load(), d.looked.Load(), d.paid.Load(); a != asked || l != looked || p != paid {
		d.Errorf("%d turns, %d look-ups and %d payments, want %d, %d and %d", a, l, p, asked, looked, paid)
	}
}

const yes = `{"question":"support/tool-2-1","response":"yes"}`

// lines keeps the log of a desk.
type lines struct {
	*desk
	slog.Handler
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	l.desk.log = append(l.desk.log, text)
	return nil
}

// count returns the number of lines that contain a text.
func (d *desk) count(part string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, line := range d.log {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// roles gives a caller the roles in its header; without one it has all.
type roles struct{}

func (roles) Principal(r *http.Request) (who serve.Principal, err error) {
	for role := range strings.SplitSeq(r.Header.Get("X-Roles"), ",") {
		if role != "" {
			who.Roles = append(who.Roles, serve.Role(role))
		}
	}
	return who, nil
}

func overJournals(t *testing.T, test func(t *testing.T, j journal.Journal)) {
	t.Run("memory", func(t *testing.T) { test(t, memdb.New(t)) })
	t.Run("sqlite", func(t *testing.T) {
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		test(t, db)
	})
}

// A run that the new program of a server refuses says so everywhere, and continues by force without
// repeating anything.
func TestRefusedRun(t *testing.T) {
	overJournals(t, func(t *testing.T, j journal.Journal) {
		r := newReceiver(t)
		d := newDesk(t, j, r.hook())
		d.waits()
		r.await(1) // the question
		d.again("", "Finds an order.")
		const change = "the settings of support changed"
		d.want("POST", "/v1/runs/a/answers", yes, 200, `"state":"refused"`)
		d.want("GET", "/v1/runs/a", "", 200, `"kind":"replay-mismatch","reason":"`)
		d.want("GET", "/v1/runs/a/result", "", 409, change)
		d.want("POST", "/v1/runs/a/resume", "", 409, change)
		d.want("POST", "/v1/runs/a/resume", `{}`, 409, change)
		d.want("GET", "/v1/runs?state=refused", "", 200, `"id":"a"`)
		d.want("GET", "/metrics", "", 200, `stone_runs_stopped_total{pipeline="support",state="refused"} 1`)
		if got := r.await(2)[1]; got.notice.Type != "run.refused" || got.notice.Run.Failure == nil || !strings.Contains(got.notice.Run.Failure.Reason, change) {
			t.Errorf("the webhook got %+v", got.notice)
		}
		if n := d.count("ended without a result"); n > 1 {
			t.Errorf("the log says %d times that it was refused", n)
		}
		_, text := d.do("GET", "/runs/a", "", "Accept", "text/html")
		if !strings.Contains(text, "the pipeline changed") || !strings.Contains(text, "Resume with the new program") {
			t.Errorf("the page of the run: %s", text)
		}
		if status, text := d.do("POST", "/v1/runs/a/resume", `{"force":true}`, "X-Roles", "read,start,answer"); status != 403 || !strings.Contains(text, `role \"force\"`) {
			t.Errorf("force without the role: %d %s", status, text)
		}
		if _, text := d.do("GET", "/runs/a", "", "Accept", "text/html", "X-Roles", "read,start"); strings.Contains(text, "Resume with the new program") {
			t.Error("a caller without the role sees the button")
		}
		d.effects(2, 1, 0)
		d.want("POST", "/v1/runs/a/resume", `{"force":true}`, 202, "")
		d.want("GET", "/v1/runs/a/result?wait=30s", "", 200, `Paid.`)
		d.effects(3, 1, 1)
	})
}

// A server with the old program continues a run that a newer one has refused.
func TestRefusedRunOldServer(t *testing.T) {
	d := newDesk(t, memdb.New(t))
	d.waits()
	old := d.looks
	d.again("", "Finds an order.")
	d.want("POST", "/v1/runs/a/answers", yes, 200, `"state":"refused"`)
	d.again("", old)
	for { // its first search finds the run
		status, text := d.do("GET", "/v1/runs/a/result?wait=30s", "")
		if status == 200 {
			break
		}
		if status != 409 && status != 202 {
			t.Fatalf("%d %s", status, text)
		}
	}
	d.effects(3, 1, 1)
}

// A changed prompt refuses nothing: the conversation continues, and the server says so.
func TestChangedPrompt(t *testing.T) {
	overJournals(t, func(t *testing.T, j journal.Journal) {
		d := newDesk(t, j)
		d.waits()
		d.again("Be strict.", "")
		d.want("POST", "/v1/runs/a/answers", yes, 200, `"id":"a"`)
		d.want("GET", "/v1/runs/a/result?wait=30s", "", 200, `Paid.`)
		d.effects(3, 1, 1)
		d.want("GET", "/v1/runs/a", "", 200, `"notices":[{"code":"prompt-changed","path":"support"`)
		if n := d.count("WARN notice of a run run=a code=prompt-changed path=support"); n != 1 {
			t.Errorf("the log says it %d times: %q", n, d.log)
		}
		_, text := d.do("GET", "/runs/a", "", "Accept", "text/html")
		if !strings.Contains(text, "prompt-changed") || !strings.Contains(text, "Be strict.") {
			t.Errorf("the page of the run: %s", text)
		}
	})
}
