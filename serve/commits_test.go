//go:build unix

package serve_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/cel"
)

// reached is the hook of journal/sqlite for its tests, with the layout of log.Points.
//
//go:linkname reached github.com/stonelayer/stone/journal/sqlite.reached
var reached atomic.Pointer[func(string)]

// A request waits for the disk before each step whose repetition matters, and before it is answered. What else it records
// goes along. A commit more is possible in a round in which the machine is slow. Each index that a start or an end changes costs
// a page of the log.
func TestCommits(t *testing.T) {
	var commits atomic.Int64
	reached.Store(new(func(point string) {
		if point == "before commit" {
			commits.Add(1)
		}
	}))
	file := filepath.Join(t.TempDir(), "stone.db")
	logged := func() int64 {
		info, err := os.Stat(file + "-wal")
		if err != nil {
			return 0
		}
		return info.Size()
	}
	db, err := sqlite.Open(file, sqlite.Options{Lease: time.Hour}) // no signs of life
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db.Close()
		reached.Store(nil)
	})
	app := gated(&writer{words: []string{"polite"}}, &writer{})
	app.Registry = call.NewRegistry(
		cel.New(call.Metadata{ID: "greeter", Intents: []string{"text/greet"}}, cel.Config{Expression: `{"text": "Hello, " + call.input.name + "!"}`}),
		model.New(call.Metadata{ID: "model", Intents: []string{"chat/answer", "chat/paid"}}, model.Config{Model: &writer{words: []string{"polite"}}}),
	)
	app.Checks["paid"] = call.Paid("paid", app.Checks["polite"])
	app.Intents = map[string]call.Intent{"text/greet": {}, "chat/answer": {}, "chat/paid": {}}
	app.Policy = call.Policy{Intents: map[string]call.Rules{
		"chat/answer": {Done: call.Done{Must: []string{"polite"}}}, "chat/paid": {Done: call.Done{Must: []string{"paid"}}},
	}}
	upper := func(_ context.Context, q string) (string, error) { return strings.ToUpper(q), nil }
	first, second := dag.NewType[string]("first"), dag.NewType[string]("second")
	s := serveAll(t, serve.Config{Journal: db, Applicator: app, Scan: time.Hour, Pipelines: []serve.Pipeline{
		{Name: "upper", Ashlar: stone.Func("upper", question, page, upper)},
		{Name: "three", Ashlar: stone.Seq("three", stone.Func("first", question, first, upper), stone.Func("second", first, second, upper), stone.Func("third", second, page, upper))},
	}})
	for _, row := range []struct {
		name, method, path, body string
		want, pages              int64
	}{
		{"an answer that is not kept", "POST", "/v1/act", ada, 0, 0},
		{"a kept answer", "POST", "/v1/act?id=act-%d", ada, 2, 18},
		{"a chat with a check", "POST", "/v1/chat/completions", `{"model":"stone/chat/answer","messages":[{"role":"user","content":"Hi"}]}`, 2, 16},
		{"a chat with a paid check", "POST", "/v1/chat/completions", `{"model":"stone/chat/paid","messages":[{"role":"user","content":"Hi"}]}`, 3, 19},
		{"a run of one step", "PUT", "/v1/runs/one-%d", `{"pipeline":"upper","input":"x"}`, 2, 16},
		{"a run of three steps", "PUT", "/v1/runs/three-%d", `{"pipeline":"three","input":"x"}`, 4, 24},
	} {
		least, most, pages := int64(1000), int64(0), int64(1<<30)
		for n := range 20 {
			path := row.path
			if strings.Contains(path, "%d") {
				path = fmt.Sprintf(path, n)
			}
			before, size := commits.Load(), logged()
			request(t, row.method, s.URL+path, row.body)
			if row.method == "PUT" {
				request(t, "GET", s.URL+path+"/result?wait=10s", "")
			}
			n := commits.Load() - before
			least, most = min(least, n), max(most, n)
			if more := logged() - size; more >= 0 { // else the log began anew
				const frame = 24 + 8192
				pages = min(pages, more/frame)
			}
		}
		t.Logf("%s: %d to %d commits, %d pages", row.name, least, most, pages)
		if least != row.want {
			t.Errorf("%s: %d commits, want %d", row.name, least, row.want)
		}
		if pages > row.pages {
			t.Errorf("%s: %d pages of the log, want at most %d", row.name, pages, row.pages)
		}
	}
}
