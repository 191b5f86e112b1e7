package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

// A protocol is a server with receivers of runs, over a journal that outlives it.
type protocol struct {
	*house
	receivers *serve.Receivers
}

func newProtocol(t *testing.T) *protocol { return protocolOver(t, memdb.New(t)) }

func protocolOver(t *testing.T, db *sqlite.DB) *protocol {
	p := &protocol{house: &house{T: t, Steps: servetest.NewSteps(), journal: db}}
	p.Server = serveAll(t, serve.Config{
		Journal: p.journal, Access: tenants{}, Grace: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler), Mounts: map[string]serve.Mount{"GET /push": p.mount},
		Pipelines: []serve.Pipeline{{Name: "draft", Ashlar: p.Write()}, {Name: "page", Ashlar: p.Publish()}, {Name: "slow", Ashlar: p.Slow()}},
	})
	return p
}

func (p *protocol) mount(of *serve.Server) (_ serve.Handler, err error) {
	p.receivers, err = of.Receivers("push", true, func(_ context.Context, _ serve.Principal, run api.Run) ([]byte, error) {
		return json.Marshal(api.Notice{Type: "run." + string(run.State), Timestamp: run.Ended, Run: &run})
	})
	return func(w http.ResponseWriter, _ *http.Request, _ serve.Principal) {}, err
}

// as sends a request of a tenant.
func (p *protocol) as(tenant, method, path, body string, status int) string {
	p.Helper()
	got, text := p.do(method, path, body, "X-Tenant", tenant)
	if got != status {
		p.Fatalf("%s %s by %s: %d %s, want %d", method, path, tenant, got, text, status)
	}
	return text
}

func (p *protocol) save(who serve.Principal, run string, to serve.Receiver) {
	p.Helper()
	if err := p.receivers.Save(p.Context(), who, run, to); err != nil {
		p.Fatal(err)
	}
}

var acme = serve.Principal{Tenant: "acme"}

// A run's bound on receivers holds for several processes that add some at once.
func TestReceiversOfProcesses(t *testing.T) {
	a := newProtocol(t)
	all := []*protocol{a, protocolOver(t, a.journal), protocolOver(t, a.journal)}
	a.as("acme", "PUT", "/v1/runs/r", `{"pipeline":"slow","input":{"text":"marble"}}`, 201)
	var saving sync.WaitGroup
	for i := range 12 {
		saving.Go(func() {
			_ = all[i%len(all)].receivers.Save(t.Context(), acme, "r", serve.Receiver{ID: fmt.Sprint("c", i), URL: "http://127.0.0.1:1/"}) // or it is one too many
		})
	}
	saving.Wait()
	if kept, err := a.receivers.List(t.Context(), acme, "r"); err != nil || len(kept) != 8 {
		t.Errorf("%d receivers, want 8; %v", len(kept), err)
	}
}

// The receivers of a tenant that hang delay neither the runs nor the notices of another one.
func TestReceiversThatHang(t *testing.T) {
	p, r := newProtocol(t), newReceiver(t)
	gate := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-gate }))
	t.Cleanup(func() { close(gate); hanging.Close() })
	for i := range 34 {
		id := fmt.Sprint("r", i)
		p.as("acme", "PUT", "/v1/runs/"+id, `{"pipeline":"draft","input":{"text":"marble"}}`, 201)
		p.as("acme", "GET", "/v1/runs/"+id+"/result?wait=30s", "", 200)
		for n := range 8 {
			p.save(acme, id, serve.Receiver{ID: fmt.Sprint(n), URL: fmt.Sprint(hanging.URL, "/", i, "/", n)})
		}
	}
	p.as("globex", "PUT", "/v1/runs/b", `{"pipeline":"page","input":{"text":"slate"}}`, 201)
	p.as("globex", "GET", "/v1/runs/b/result?wait=30s", "", 202)
	if err := journal.Answer(t.Context(), p.journal, "globex.b", "approve", ask.Answer{Response: "no"}); err != nil {
		t.Fatal(err)
	}
	p.as("globex", "GET", "/v1/runs/b/result?wait=15s", "", 200)
	p.save(serve.Principal{Tenant: "globex"}, "b", serve.Receiver{ID: "one", URL: r.URL})
	r.await(1)
}

// A receiver that is down costs a few attempts, whatever the number of its runs. It gets all notices when it
// is up again, and a tenant with the same receiver has its own experience of it.
func TestReceiverDown(t *testing.T) {
	const runs = 30
	p, r := newProtocol(t), newReceiver(t)
	r.set(503)
	for i := range runs {
		id := fmt.Sprint("r", i)
		p.as("acme", "PUT", "/v1/runs/"+id, `{"pipeline":"draft","input":{"text":"marble"}}`, 201)
		p.as("acme", "GET", "/v1/runs/"+id+"/result?wait=30s", "", 200)
		p.save(acme, id, serve.Receiver{ID: "one", URL: r.URL})
		if i < 3 {
			r.await(i + 1)
			time.Sleep(10 * time.Millisecond) // until the server has read the refusal
		}
	}
	r.mu.Lock()
	tries := r.tries
	r.mu.Unlock()
	if tries > runs/2 {
		t.Errorf("%d attempts at a receiver that is down", tries)
	}
	r.set(200)
	r.await(runs)
}

// A caller without a tenant changes the receivers of a run as its tenant does.
func TestReceiverOfForeignRun(t *testing.T) {
	p, r := newProtocol(t), newReceiver(t)
	p.as("acme", "PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"marble"}}`, 201)
	operator := serve.Principal{}
	p.save(operator, "acme.a", serve.Receiver{ID: "one", URL: r.URL})
	if got := r.await(1)[0].notice.Run.ID; got != "a" {
		t.Errorf("the notice is about %s", got)
	}
	p.save(acme, "a", serve.Receiver{ID: "one", URL: r.URL + "/2"})
	for id, who := range map[string]serve.Principal{"acme.a": operator, "a": acme} {
		if all, err := p.receivers.List(t.Context(), who, id); err != nil || len(all) != 1 || all[0].URL != r.URL+"/2" {
			t.Errorf("the receivers of %s: %+v, %v", id, all, err)
		}
	}
	if err := p.receivers.Remove(t.Context(), operator, "acme.a", "one"); err != nil {
		t.Fatal(err)
	}
	if all, err := p.receivers.List(t.Context(), acme, "a"); err != nil || len(all) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A run has at most eight receivers, however many come at once, and keeps one that cannot be replaced.
func TestReceiversAtOnce(t *testing.T) {
	p, r := newProtocol(t), newReceiver(t)
	p.as("acme", "PUT", "/v1/runs/a", `{"pipeline":"slow","input":{"text":"marble"}}`, 201)
	starter := serve.Principal{Tenant: "acme", Roles: []serve.Role{serve.Start}}
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() { // most are refused
			_ = p.receivers.Save(t.Context(), starter, "a", serve.Receiver{ID: fmt.Sprint("n", i%16), URL: fmt.Sprint(r.URL, "/", i)})
		})
	}
	all.Wait()
	before, err := p.receivers.List(t.Context(), acme, "a")
	if err != nil || len(before) != 8 {
		t.Fatalf("%d receivers: %v", len(before), err)
	}
	p.Stop()
	if err := p.receivers.Save(t.Context(), acme, "a", serve.Receiver{ID: before[0].ID, URL: r.URL + "/other"}); err == nil {
		t.Error("a server that is closed has saved a receiver")
	}
	if after, err := p.receivers.List(t.Context(), acme, "a"); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("%+v, %v, want %+v", after, err, before)
	}
}

// The receivers of a run go with it.
func TestReceiversOfRemovedRun(t *testing.T) {
	p, r := newProtocol(t), newReceiver(t)
	for _, id := range []string{"a", "b"} {
		p.as("acme", "PUT", "/v1/runs/"+id, `{"pipeline":"draft","input":{"text":"marble"}}`, 201)
		p.as("acme", "GET", "/v1/runs/"+id+"/result?wait=30s", "", 200)
		p.save(acme, id, serve.Receiver{ID: "one", URL: r.URL})
	}
	p.as("acme", "DELETE", "/v1/runs/a", "", 204)
	for id, want := range map[string]int{"acme.a": 0, "acme.b": 1} {
		if kept, err := p.journal.Receivers(t.Context(), id); err != nil || len(kept) != want {
			t.Errorf("%s has %d receivers, want %d: %v", id, len(kept), want, err)
		}
	}
}

// A receiver to which no notice could be sent is refused at once.
func TestBadReceivers(t *testing.T) {
	p := newProtocol(t)
	p.as("acme", "PUT", "/v1/runs/bad", `{"pipeline":"page","input":{"text":"marble"}}`, 201)
	for name, value := range map[string]string{"a name": "x", "a:b": "x", "": "x", "X-Lines": "a\r\nb", "X-Long": strings.Repeat("x", 9<<10)} {
		err := p.receivers.Save(p.Context(), acme, "bad", serve.Receiver{ID: "one", URL: "http://127.0.0.1:1/", Header: map[string]string{name: value}})
		if err == nil || !strings.Contains(err.Error(), "the receiver: ") {
			t.Errorf("header %.20q: %.20q: error %v, want that it is refused", name, value, err)
		}
	}
}
