//go:build !race

// The race detector needs memory of its own.

package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/x/gateway"
	"github.com/stonelayer/stone/x/ui"
)

// Sizes of the largest things that callers can store, less a little for JSON.
const (
	largestQuestion = 1<<20 - 2000
	largestResult   = 7_800_000
)

var (
	largeText   = dag.NewType[string]("text")
	largeAnswer = dag.NewType[stone.Answer]("answer")
)

// largest are pipelines whose runs are as large as they can be.
func largest(questions int) []Pipeline {
	ask := func(name string) stone.Ashlar {
		return stone.Ask(name, largeText, largeAnswer, func(s string) string { return strings.Repeat("q", largestQuestion) })
	}
	var many []stone.FanPart
	for i := range questions {
		many = append(many, ask(fmt.Sprint("ask-", i)))
	}
	sum := stone.Reduce(stone.Func("sum", dag.Lanes(largeAnswer), dag.NewType[int]("sum"), func(_ context.Context, all []stone.Answer) (int, error) { return len(all), nil }))
	write := stone.Func("write", largeText, dag.NewType[string]("page"), func(_ context.Context, s string) (string, error) { return strings.Repeat("r", largestResult), nil })
	return []Pipeline{{Name: "ask", Ashlar: ask("ask")}, {Name: "many", Ashlar: stone.Seq("all", stone.Parallel("many", many...), sum)}, {Name: "write", Ashlar: write}}
}

// largestAsked are how many questions each run of the pipeline many asks.
const largestAsked = 80

// A drain is a client that counts what it reads. It is safe for use by one request.
type drain struct {
	header http.Header
	status int
	bytes  int
}

func (d *drain) Header() http.Header    { return d.header }
func (d *drain) WriteHeader(status int) { d.status = status }
func (d *drain) Flush()                 {}

func (d *drain) Write(p []byte) (int, error) {
	if d.status == 0 {
		d.status = http.StatusOK
	}
	d.bytes += len(p)
	return len(p), nil
}

// send sends a request to all of a server, and returns the reply's status and size.
func send(h http.Handler, method, path, body string, header ...string) *drain {
	wait := time.Minute
	if len(header) > 0 { // a stream does not end
		wait = 300 * time.Millisecond
	} else if strings.HasSuffix(path, "/stream") || strings.HasSuffix(path, "/events") {
		wait = time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	d := &drain{header: http.Header{}}
	h.ServeHTTP(d, r)
	return d
}

// memoryOfServer bounds the server process's memory, in bytes.
const memoryOfServer = 256 << 20

// TestLargest sends a request to every route and page of a server whose journal has the largest things that callers can store. Its
// memory stays within 256 MB, one request after the other and several at once, and no list is larger than its pages.
func TestLargest(t *testing.T) {
	if file := os.Getenv("STONE_LARGEST"); file != "" {
		serveLargest(t, file)
		return
	}
	need.Time(t) // it fills a journal of 300 MB
	if _, err := os.Stat("/proc/self/status"); err != nil {
		need.Absent(t, "there is no /proc, from which it reads the memory of a process")
	}
	file := filepath.Join(t.TempDir(), "stone.db")
	fillLargest(t, file)
	cmd := exec.Command(os.Args[0], "-test.run=^TestLargest$", "-test.v")
	cmd.Env = append(os.Environ(), "STONE_LARGEST="+file, "GOMEMLIMIT=180MiB", "GOGC=50")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

func fillLargest(t *testing.T, file string) {
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := New(Config{Journal: db, Pipelines: largest(largestAsked), Scan: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	defer running.Wait()
	defer cancel()
	labels := map[string]string{"chat": "talk"}
	for i := range 13 {
		labels[fmt.Sprintf("%064d", i)] = strings.Repeat("l", 512)
	}
	for i := range 60 + 12 + 1 {
		of := "ask"
		switch {
		case i == 72:
			of = "many"
		case i >= 60:
			of = "write"
		}
		labels["chat-turn"] = strconv.Itoa(i)
		body, err := json.Marshal(map[string]any{"pipeline": of, "input": "x", "labels": labels})
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint(of, "-", i)
		if d := send(s, "PUT", "/v1/runs/"+id, string(body)); d.status != http.StatusCreated {
			t.Fatalf("start %s: %d", id, d.status)
		}
		if d := send(s, "GET", "/v1/runs/"+id+"/result?wait=60s", ""); d.status != http.StatusOK && d.status != http.StatusAccepted {
			t.Fatalf("result of %s: %d", id, d.status)
		}
	}
}

// serveLargest is the process of the server.
func serveLargest(t *testing.T, file string) {
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := New(Config{Journal: db, Protocols: []Protocol{ui.Part, gateway.Part}, Pipelines: largest(largestAsked)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	node := func(run string) string {
		info, err := db.Find(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		return info.Node.String()
	}
	runs := []string{"ask-0", "write-60", "many-72"}
	names := strings.NewReplacer("{name...}", "many", "{name}", "ask", "{chat}", "talk", "{model...}", "ask", "{file}", "page.js", "{$}", "")
	var requests [][3]string
	for _, r := range slices.Concat(s.table(), s.pageRoutes()) {
		method, path, _ := strings.Cut(names.Replace(r.pattern), " ")
		body := ""
		if method == http.MethodPost || method == http.MethodPut {
			body = `{"question":"no-such","response":"x"}`
		}
		if method == http.MethodDelete {
			path = strings.ReplaceAll(path, "{id}", "no-such")
		}
		for _, run := range runs {
			one := strings.NewReplacer("{id}", run, "{node}", node(run)).Replace(path)
			if one == path && run != runs[0] {
				break
			}
			requests = append(requests, [3]string{method, one, body})
			if method == http.MethodGet && strings.HasPrefix(one, "/v1/") {
				requests = append(requests, [3]string{"STREAM", one, ""})
			}
		}
	}
	more := []string{"/v1/runs?limit=1000", "/v1/questions?limit=1000", "/v1/threads?limit=1000", "/v1/runs/many-72/questions?limit=1000&open=true",
		"/?q=" + url.QueryEscape("state:waiting"), "/compare?a=many-72&b=ask-0", "/runs/many-72/step?path=all/many%5B0%5D/ask-0", "/overview?days=90"}
	for _, path := range more {
		requests = append(requests, [3]string{"GET", path, ""})
	}
	ask := func(r [3]string) {
		var d *drain
		if r[0] == "STREAM" {
			d = send(s, "GET", r[1], "", "Accept", "text/event-stream")
		} else {
			d = send(s, r[0], r[1], r[2])
		}
		if d.status >= 500 {
			t.Errorf("%s: %d", r, d.status)
		}
		if most := 2*pageBytes + largestResult; d.bytes > most {
			t.Errorf("%s: a reply of %d bytes, want at most %d", r, d.bytes, most)
		}
	}
	debug.FreeOSMemory()
	for _, r := range requests {
		before := peak(t)
		ask(r)
		if after := peak(t); after > before && after > memoryOfServer/2 {
			t.Logf("%s: %d MB", r, after>>20)
		}
	}
	t.Logf("%d requests, one after the other: at most %d MB", len(requests), peak(t)>>20)
	var all sync.WaitGroup
	for _, path := range more {
		all.Go(func() { ask([3]string{"GET", path, ""}) })
	}
	all.Wait()
	if got := peak(t); got > memoryOfServer {
		t.Errorf("the server took %d MB, want at most %d", got>>20, memoryOfServer>>20)
	}
}

// peak is the largest resident memory that this process had.
func peak(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
