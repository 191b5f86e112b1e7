package serve_test

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/serve"
)

// The lost lanes of a run that is done are repeated by a button and by a request, and nothing else is.
func TestLostLanesAreRepeated(t *testing.T) {
	items, item, made, sum := dag.NewType[[]int]("items"), dag.NewType[int]("item"), dag.NewType[int]("made"), dag.NewType[int]("sum")
	var ill, calls atomic.Int32
	lane := stone.Func("make", item, made, func(_ context.Context, n int) (int, error) {
		if calls.Add(1); n <= int(ill.Load()) {
			return 0, errors.New("the server is ill")
		}
		return n, nil
	})
	p := stone.Seq("all",
		stone.Map("each", items, item, lane, stone.Quorum(1)),
		stone.Reduce(stone.Func("sum", dag.Lanes(made), sum, func(_ context.Context, all []int) (n int, err error) {
			for _, m := range all {
				n += m
			}
			return n, nil
		})))
	h := &house{T: t, Server: serveAll(t, serve.Config{Journal: memdb.New(t), Pipelines: []serve.Pipeline{{Name: "all", Ashlar: p, Result: "sum"}}})}
	done := func(part string) {
		t.Helper()
		h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, part)
	}
	ill.Store(2)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"all","input":[1,2,3]}`, 201, "")
	done(`"content":3`)
	page := h.want("GET", "/runs/a", "", 200, "2 of 3 lanes lost")
	form := regexp.MustCompile(`name="seen" value="([^"]+)"><input type="hidden" name="lost" value="(yes)"`).FindStringSubmatch(page)
	if form == nil {
		t.Fatalf("no form in %s", page)
	}
	ill.Store(1)
	if status, text := h.form("/runs/a/resume", url.Values{"seen": {form[1]}, "lost": {form[2]}}); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	done(`"content":5`)
	if got := calls.Load(); got != 5 {
		t.Errorf("%d lanes were made, want 3 and 2 again", got)
	}
	ill.Store(0)
	h.want("POST", "/v1/runs/a/resume", "", 409, "the run is done")
	h.want("POST", "/v1/runs/a/resume", `{"lost":true}`, 202, "")
	done(`"content":6`)
	h.want("POST", "/v1/runs/a/resume", `{"lost":true}`, 409, "the run has no lost lanes")
	if _, text := h.do("GET", "/runs/a", "", "Accept", "text/html"); regexp.MustCompile(`name="lost"`).MatchString(text) {
		t.Error("a button for lanes that are not lost")
	}
}
