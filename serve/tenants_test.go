package serve_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
)

// bodies are what the routes need that read one.
var bodies = map[string]string{
	"PUT /v1/runs/{id}":          `{"pipeline":"page","input":{"text":"slate"}}`,
	"POST /v1/runs":              `{"pipeline":"page","input":{"text":"slate"}}`,
	"POST /v1/ui/{name}":         `{"id":"chat","messages":[{"id":"ID","role":"assistant","parts":[{"type":"tool-x","approval":{"id":"ID~page/approve#1","approved":true}}]}]}`,
	"POST /v1/agui/{name}":       `{"threadId":"chat","runId":"1","messages":[],"resume":[{"interruptId":"ID~page/approve#1","status":"resolved","payload":"yes"}]}`,
	"POST /v1/runs/{id}/answers": `{"question":"page/approve","response":"yes"}`,
}

// common are the routes whose replies are the same for all tenants.
var common = map[string]bool{
	"GET /v1/pipelines": true, "POST /v1/act": true, "GET /v1/caps": true, "GET /v1/pipelines/{name}": true, "GET /v1/models": true, "GET /v1/models/{model...}": true,
}

// Every route, asked by another tenant, says the same as about a run that nobody has.
func TestForeignTenant(t *testing.T) {
	h := newHouse(t, tenants{})
	as := func(tenant, method, path, body string) (int, string) {
		return h.do(method, path, body, "X-Tenant", tenant)
	}
	if status, text := as("acme", "PUT", "/v1/runs/secret", `{"pipeline":"page","input":{"text":"marble"},"labels":{"who":"x"}}`); status != 201 {
		t.Fatal(status, text)
	}
	_, text := as("acme", "GET", "/v1/runs/secret/result?wait=30s", "")
	before := h.run(text)
	info, err := h.journal.Find(t.Context(), "acme.secret")
	if err != nil {
		t.Fatal(err)
	}
	node := info.Heads[0].String()
	for _, pattern := range h.Server.Patterns() {
		if common[pattern] {
			continue
		}
		method, path, _ := strings.Cut(pattern, " ")
		who := "initech"
		if method == "PUT" || pattern == "POST /v1/runs" { // starts a run of its own
			who = "globex"
		}
		for _, id := range []string{"secret", "acme.secret", "acme%2Esecret", "..%2Facme.secret"} {
			at := func(id string) string {
				return strings.NewReplacer("{id}", id, "{node}", node, "{name}", "page", "{chat}", id).Replace(path)
			}
			if strings.Contains(at(id), "{") {
				t.Fatalf("%s: say what its parameters are, or that it is common", pattern)
			}
			body := func(id string) string { return strings.ReplaceAll(bodies[pattern], "ID", id) }
			status, text := as(who, method, at(id), body(id))
			if strings.Contains(text, "marble") || strings.Contains(text, "acme") && !strings.Contains(id, "acme") {
				t.Errorf("%s of %s tells %s", pattern, id, text)
			}
			if other, said := as(who, method, at(strings.Replace(id, "secret", "nobody", 1)), body(strings.Replace(id, "secret", "nobody", 1))); status != other || len(text) != len(said) && strings.HasPrefix(pattern, "GET") {
				t.Errorf("%s of %s: %d %s, of a run that nobody has: %d %s", pattern, id, status, text, other, said)
			}
			if strings.Contains(path, "{id}") && method != "PUT" && status != http.StatusNotFound {
				t.Errorf("%s of %s: %d %s, want 404", pattern, id, status, text)
			}
		}
	}
	if status, text := as("initech", "GET", "/v1/runs?before=acme.secret", ""); status != http.StatusNotFound {
		t.Errorf("a page after the run of another: %d %s", status, text)
	}
	if _, text := as("initech", "GET", "/v1/runs?label.who=x", ""); !strings.Contains(text, `"runs":[]`) {
		t.Errorf("the runs of another by a label: %s", text)
	}
	_, text = as("acme", "GET", "/v1/runs/secret", "")
	if after := h.run(text); after.State != before.State || !after.Started.Equal(before.Started) {
		t.Errorf("the run was %+v and is %+v", before, after)
	}
}

// oddTenant returns a tenant that could stand for the runs of another.
type oddTenant struct{}

func (oddTenant) Principal(*http.Request) (serve.Principal, error) {
	return serve.Principal{Tenant: "a.b"}, nil
}

func TestOddTenant(t *testing.T) {
	newHouse(t, oddTenant{}).want("GET", "/v1/runs", "", 500, `"type":"internal"`)
}

// A page after a run that does not exist is not the first page.
func TestUnknownBefore(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"x"}}`, 201, "")
	h.want("GET", "/v1/runs?before=b", "", 404, "no such run")
	h.want("GET", "/v1/runs?before=a", "", 200, `"runs":[]`)
}

// one is a caller that may have one run at once.
type one struct{}

func (one) Principal(*http.Request) (serve.Principal, error) {
	return serve.Principal{Name: "ci", Runs: new(1)}, nil
}

func TestRunsAtOnce(t *testing.T) {
	h := newHouse(t, one{})
	h.want("PUT", "/v1/runs/w", `{"pipeline":"page","input":{"text":"x"}}`, 201, "")
	h.want("GET", "/v1/runs/w/result?wait=30s", "", 202, `"state":"waiting"`) // so it no longer runs
	statuses := make(chan int, 20)
	for i := range cap(statuses) {
		go func() {
			status, _ := h.do("PUT", "/v1/runs/"+string(rune('a'+i)), `{"pipeline":"slow","input":{"text":"x"}}`)
			statuses <- status
		}()
	}
	count := map[int]int{}
	for range cap(statuses) {
		count[<-statuses]++
	}
	if count[201] != 1 || count[429] != cap(statuses)-1 {
		t.Errorf("of runs at once: %v", count)
	}
	h.want("POST", "/v1/runs/w/resume", "", 429, "wait for one of them")
	close(h.Gate)
}

// A run that cannot continue is retried less and less often, and its error is logged once.
func TestRunThatCannotGoOn(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"x"}}`, 201, "")
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 202, `"state":"waiting"`)
	h.Stop()
	if err := journal.Answer(t.Context(), h.journal, "a", "approve", ask.Answer{Response: "no"}); err != nil {
		t.Fatal(err)
	}
	h.changed = true
	h.open(nil)
	for !strings.Contains(h.want("GET", "/v1/runs/a", "", 200, ""), `"state":"refused"`) {
		time.Sleep(time.Millisecond)
	}
	h.want("GET", "/v1/runs/a/result", "", 409, `"state":"refused"`)
	time.Sleep(400 * time.Millisecond)
	if n := h.lines.Load(); n != 1 {
		t.Errorf("the log has %d lines, want 1", n) // of about 40 searches
	}
	h.want("POST", "/v1/runs/a/cancel", "", 200, `"state":"canceled"`) // by its records
	h.want("POST", "/v1/runs/a/cancel", "", 409, "the run is already canceled")
}

// A cached answer is taken from runs of the same tenant alone, which are named as the tenant calls them.
func TestCachedAnswersOfTenants(t *testing.T) {
	asked := 0
	registry := call.NewRegistry(call.Capability{Metadata: call.Metadata{ID: "a", Intents: []string{"text/greet"}}, Invoke: func(context.Context, *call.Request) (*call.Reply, error) {
		asked++
		return &call.Reply{Out: call.JSON(`"hello"`)}, nil
	}})
	answer := dag.NewType[any]("answer")
	greet := call.New("greet", answer, call.Spec{
		Applicator: &call.Applicator{Registry: registry}, Intent: "text/greet", Cache: call.Cache{MaxAge: new(time.Hour)},
		Input: call.From(dag.Derive(order, func(o servetest.Doc) any { return map[string]any{"text": o.Text} })),
	})
	file, err := sqlite.Open(filepath.Join(memdir.New(t), "stone.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	for name, j := range map[string]journal.Journal{"memory": memdb.New(t), "sqlite": file} {
		t.Run(name, func(t *testing.T) {
			asked = 0
			h := &house{T: t, Server: serveAll(t, serve.Config{Journal: j, Access: tenants{}, Pipelines: []serve.Pipeline{{Name: "greet", Ashlar: greet}}})}
			for _, run := range []struct {
				tenant, id string
				asked      int
			}{{"acme", "secret-x", 1}, {"bolt", "b", 2}, {"acme", "again", 2}} {
				if status, text := h.do("PUT", "/v1/runs/"+run.id, `{"pipeline":"greet","input":{"text":"x"}}`, "X-Tenant", run.tenant); status != 201 {
					t.Fatal(status, text)
				}
				if _, text := h.do("GET", "/v1/runs/"+run.id+"/result?wait=30s", "", "X-Tenant", run.tenant); !strings.Contains(text, `"done"`) || strings.Contains(text, "acme.") || asked != run.asked {
					t.Errorf("%s of %s, asked %d times, want %d: %s", run.id, run.tenant, asked, run.asked, text)
				}
				for _, path := range []string{"/v1/runs/" + run.id + "/events", "/runs/" + run.id, "/runs/" + run.id + "/step?path=greet"} {
					_, text := h.do("GET", path, "", "X-Tenant", run.tenant, "Accept", "text/html")
					if strings.Contains(text, "acme.") || strings.Contains(text, "secret-x") != (run.tenant == "acme") {
						t.Errorf("%s of %s: %s", path, run.tenant, text)
					}
				}
			}
		})
	}
}
