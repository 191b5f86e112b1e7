package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

// counted counts the followers of a journal.
type counted struct {
	*sqlite.DB
	follows atomic.Int64
	most    atomic.Int64 // if positive, calls of Follow beyond it panic
}

func (c *counted) Follow(ctx context.Context, run string, after int64) iter.Seq2[journal.Row, error] {
	if n, most := c.follows.Add(1), c.most.Load(); most > 0 && n > most {
		panic("the server reads a run again and again")
	}
	return c.DB.Follow(ctx, run, after)
}

// crowd is a server that restarts while clients stream one run of it.
type crowd struct {
	*testing.T
	journal counted
	body    stone.Ashlar
	url     atomic.Pointer[string]
	opened  atomic.Int64 // streams
}

func (c *crowd) start() (stop func()) {
	s := serveAll(c, serve.Config{Journal: &c.journal, Scan: 5 * time.Millisecond, Pipelines: []serve.Pipeline{{Name: "many", Ashlar: c.body}}})
	c.url.Store(&s.URL)
	return s.Stop
}

// client streams the run to its end and returns the ids of its events. It cuts its stream
// after every few of them, as often as cuts says.
func (c *crowd) client(number, cuts int) (ids []string) {
	transport := &http.Transport{ReadBufferSize: 512, WriteBufferSize: 512}
	defer transport.CloseIdleConnections()
	for last := ""; !strings.HasSuffix(last, "-done"); {
		most := 1 << 30
		if cuts > 0 {
			most = 1 + (number+cuts)%7
		}
		req, err := http.NewRequestWithContext(c.Context(), "GET", *c.url.Load()+"/v1/runs/a/events", nil)
		if err != nil {
			c.Error(err)
			return ids
		}
		if req.Header.Set("Last-Event-ID", last); last == "" {
			req.Header.Del("Last-Event-ID")
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			if c.Context().Err() != nil {
				return ids
			}
			time.Sleep(time.Millisecond)
			continue // the server restarts
		}
		if resp.StatusCode == 200 {
			c.opened.Add(1)
		}
		for lines := bufio.NewScanner(resp.Body); most > 0 && lines.Scan(); {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				last, most = id, most-1
				ids = append(ids, id)
			}
		}
		if resp.Body.Close(); most == 0 {
			cuts--
		}
	}
	return ids
}

// put creates a run.
func put(t *testing.T, url, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "PUT", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != 201 {
		t.Fatal(resp.Status)
	}
}

// Clients whose streams are cut again and again, by them and by servers that restart, get
// every event once. STONE_CROWD is the number of clients; the figures are logged.
func TestCrowd(t *testing.T) {
	clients, cuts, steps := 40, 6, 60
	if n, err := strconv.Atoi(os.Getenv("STONE_CROWD")); err == nil {
		clients, cuts, steps = n, 20, 400
	}
	c := &crowd{T: t, journal: counted{DB: memdb.New(t)}}
	number := dag.NewType[int]("number")
	var parts []stone.Ashlar
	for i := range steps {
		parts = append(parts, stone.Func0(fmt.Sprintf("s%d", i), number, func(context.Context) (int, error) {
			time.Sleep(time.Duration(1+clients/40) * time.Millisecond)
			return i, nil
		}))
	}
	c.body = stone.Seq("many", parts...)
	stop := c.start()
	put(t, *c.url.Load()+"/v1/runs/a", `{"pipeline":"many"}`)
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got := make([][]string, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { got[i] = c.client(i, cuts) })
	}
	for third := range 2 {
		for c.rows() < (third+1)*2*steps/3 {
			time.Sleep(time.Millisecond)
		}
		runtime.ReadMemStats(&during)
		t.Logf("%d KB a client, with its own side", (int64(during.HeapInuse+during.StackInuse)-int64(before.HeapInuse+before.StackInuse))/1024/int64(clients))
		stop()
		stop = c.start()
	}
	all.Wait()
	stop()
	var want []string
	for row, err := range c.journal.DB.Follow(t.Context(), "a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, strconv.FormatInt(row.Seq, 10))
	}
	for i, ids := range got {
		steps := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return strings.Contains(id, "-") })
		if !slices.Equal(steps, want) {
			t.Fatalf("client %d has %v\nwant %v", i, steps, want)
		}
		if slices.Sort(ids); len(slices.Compact(ids)) != len(ids) {
			t.Fatalf("client %d has an event twice: %v", i, ids)
		}
	}
	t.Logf("%d streams of %d clients, %d followers", c.opened.Load(), clients, c.journal.follows.Load())
}

// Clients that stream a run at one time share one follower of the journal.
func TestFollowerShared(t *testing.T) {
	c := &crowd{T: t, journal: counted{DB: memdb.New(t)}}
	number, gate := dag.NewType[int]("number"), make(chan struct{})
	c.body = stone.Seq("many", stone.Func0("first", number, func(context.Context) (int, error) { return 1, nil }),
		stone.Func0("second", number, func(context.Context) (int, error) { <-gate; return 2, nil }))
	defer c.start()()
	defer close(gate)
	put(t, *c.url.Load()+"/v1/runs/a", `{"pipeline":"many"}`)
	var streams []*bufio.Scanner
	for range 40 {
		resp, err := http.Get(*c.url.Load() + "/v1/runs/a/events")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		streams = append(streams, bufio.NewScanner(resp.Body))
	}
	for _, stream := range streams { // each is open, and gets what the run has so far
		for ok := false; !ok; {
			if !stream.Scan() {
				t.Fatal(stream.Err())
			}
			ok = strings.HasPrefix(stream.Text(), "data: ")
		}
	}
	if n := c.journal.follows.Load(); n != 1 {
		t.Errorf("%d followers for %d streams", n, len(streams))
	}
}

// rows counts the rows of the run.
func (c *crowd) rows() int {
	steps, err := c.journal.Steps(c.Context(), "a")
	if err != nil {
		c.Error(err)
	}
	n := 0
	for _, s := range steps {
		n += s.Attempts
		if s.Recorded {
			n++
		}
	}
	return n
}

// A stream from now on says where it begins before there is an event: a client that is cut
// comes back to that place.
func TestEventsFromNow(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"slow","input":{"text":"x"}}`, 201, `"state":"running"`)
	last, err := h.journal.Last(t.Context(), "a")
	if err != nil || last == 0 {
		t.Fatal(last, err)
	}
	ids, kinds := h.events(t.Context(), "/v1/runs/a/events?after=now", "", 0)
	if len(ids) != 1 || ids[0] != strconv.FormatInt(last, 10) || len(kinds) > 0 {
		t.Errorf("the stream begins with %v, %v, want %d", ids, kinds, last)
	}
	h.want("GET", "/v1/runs/a/events?after=then", "", 400, "the id of an event")
	close(h.Gate)
}

// listed reads a stream of a list until n events were read, and returns their ids and data.
func (h *house) listed(ctx context.Context, path, after string, n int, header ...string) (ids, data []string) {
	h.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", h.URL+path, nil)
	if err != nil {
		h.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || kind != "text/event-stream" {
		h.Fatalf("%s: status %d, %s", path, resp.StatusCode, kind)
	}
	for lines := bufio.NewScanner(resp.Body); len(data) < n && lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, id)
		}
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, text)
		}
	}
	return ids, data
}

// A watched list is sent at once and after each change. A client that reconnects, to any server, with
// the id of the current list gets nothing until the list changes.
func TestWatchedLists(t *testing.T) {
	h := newHouse(t, nil)
	ids, data := h.listed(t.Context(), "/v1/runs?state=waiting", "", 1)
	if len(ids) != 1 || data[0] != `{"runs":[]}` {
		t.Fatalf("got %v, %v", ids, data)
	}
	questions, data := h.listed(t.Context(), "/v1/questions", "", 1)
	if data[0] != `{"questions":[]}` {
		t.Fatalf("got %v, %v", questions, data)
	}
	h.Stop()
	h.open(nil)
	type seen struct{ ids, data []string }
	changed := make(chan seen, 2)
	for path, after := range map[string]string{"/v1/runs?state=waiting": ids[0], "/v1/questions": questions[0]} {
		go func() {
			ids, data := h.listed(t.Context(), path, after, 1)
			changed <- seen{ids, data}
		}()
	}
	h.want("PUT", "/v1/runs/done", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "") // changes neither
	h.want("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"marble"}}`, 201, "")
	for range 2 {
		got := <-changed
		if len(got.ids) != 1 || !strings.Contains(got.data[0], `"a"`) || strings.Contains(got.data[0], "done") {
			t.Errorf("got %v", got)
		}
		if got.ids[0] == ids[0] || got.ids[0] == questions[0] {
			t.Errorf("another list has the same id %s", got.ids[0])
		}
	}
	h.want("GET", "/v1/runs?after="+ids[0], "", 400, "unknown parameter")
}

// Clients that watch the same list share one reader of the journal, which ends with the last
// client. A tenant sees only its own runs.
func TestWatchersShare(t *testing.T) {
	h := newHouse(t, tenants{})
	ctx, cancel := context.WithCancel(t.Context())
	watched := func(lists, clients int) {
		t.Helper()
		for {
			switch l, c := h.Server.Watched(); {
			case l == lists && c == clients:
				return
			case c == clients && clients > 0:
				t.Fatalf("%d lists are read for %d clients, want %d", l, c, lists)
			}
			time.Sleep(time.Millisecond)
		}
	}
	const clients = 20
	for range clients {
		go func() {
			req, err := http.NewRequestWithContext(ctx, "GET", h.URL+"/v1/runs", nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Accept", "text/event-stream")
			req.Header.Set("X-Tenant", "acme")
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body) // until it is cancelled
				resp.Body.Close()
			}
		}()
	}
	watched(1, clients)
	if status, _ := h.do("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"x"}}`, "X-Tenant", "acme"); status != 201 {
		t.Fatal(status)
	}
	if _, data := h.listed(ctx, "/v1/runs", "", 1, "X-Tenant", "globex"); data[0] != `{"runs":[]}` {
		t.Errorf("another tenant sees %s", data)
	}
	cancel()
	watched(0, 0)
}

// A stream that asks for it tells what models are writing, in events without an id, until that is
// complete or void.
func TestSaid(t *testing.T) {
	h := newHouse(t, nil)
	goOn := make(chan struct{})
	speaks := stone.Func0("speak", draft, func(ctx context.Context) (string, error) {
		for _, reason := range []string{"void", ""} {
			place := event.At(ctx)
			voice := place.Speak("model")
			voice.Say(event.Thinking, "hm")
			voice.Say(event.Text, strings.Repeat("é", 2000))
			voice.Say(event.Text, " at the end")
			<-goOn
			if reason != "" {
				voice.Again(reason)
			} else {
				voice.End()
			}
			<-goOn
		}
		return "x", nil
	})
	s := serveAll(t, serve.Config{Journal: h.journal, Pipelines: []serve.Pipeline{{Name: "speak", Ashlar: speaks}}})
	put(t, s.URL+"/v1/runs/a", `{"pipeline":"speak"}`)
	h.Server = s
	h.want("GET", "/v1/runs/a/events?said=2", "", 400, "want true or false")
	resp, err := http.Get(s.URL + "/v1/runs/a/events?said=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	var heard []string
	for kind, id := "", ""; lines.Scan(); {
		line := lines.Text()
		if text, ok := strings.CutPrefix(line, "id: "); ok {
			id = text
		} else if text, ok := strings.CutPrefix(line, "event: "); ok {
			kind = text
		} else if text, ok := strings.CutPrefix(line, "data: "); ok && kind == "said" {
			var e api.Event
			if err := json.Unmarshal([]byte(text), &e); err != nil || id != "" || len(e.Said) > 1 {
				t.Fatal(line, id, err)
			}
			said := "nothing"
			if len(e.Said) == 1 && !strings.HasSuffix(e.Said[0].Text, " at the end") {
				continue // a slow machine sees the pieces one by one
			}
			if len(e.Said) == 1 {
				said = e.Said[0].Path + " " + e.Said[0].Source + " " + strings.TrimLeft(e.Said[0].Text, "…é")
				if n := len(e.Said[0].Text); n < 2000 || n > 2048 || !strings.HasPrefix(e.Said[0].Text, "…é") {
					t.Errorf("%d bytes: %.20q", n, e.Said[0].Text)
				}
			}
			heard = append(heard, said)
			goOn <- struct{}{}
		} else if line == "" {
			id = ""
		}
	}
	if want := []string{"speak model  at the end", "nothing", "speak model  at the end", "nothing"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}
