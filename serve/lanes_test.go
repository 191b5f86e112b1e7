package serve_test

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/serve"
)

// The pages name the lanes of a map by their items: in the tree, above a part and a step, and in the failure.
func TestLanesAreNamedByTheirItems(t *testing.T) {
	items, item, made, sum := dag.NewType[[]string]("items"), dag.NewType[string]("item"), dag.NewType[string]("made"), dag.NewType[int]("sum")
	read := stone.Func("read", item, made, func(_ context.Context, s string) (string, error) { return s, nil })
	check := stone.Func("check", made, made, func(_ context.Context, s string) (string, error) {
		if s == "docs/b.pdf" {
			return "", errors.New("the page is empty")
		}
		return s, nil
	})
	pipeline := func(name string, body stone.Ashlar) serve.Pipeline {
		p := stone.Seq(name,
			stone.Map("each", items, item, body, stone.Quorum(1)),
			stone.Reduce(stone.Func("sum", dag.Lanes(made), sum, func(_ context.Context, all []string) (int, error) { return len(all), nil })))
		return serve.Pipeline{Name: name, Ashlar: p, Result: "sum"}
	}
	j := memdb.New(t)
	h := &house{T: t, Server: serveAll(t, serve.Config{Journal: j, Pipelines: []serve.Pipeline{pipeline("one", read), pipeline("two", stone.Seq("both", read, check))}})}
	page := func(path, part string) {
		t.Helper()
		h.want("GET", path, "", 200, part)
	}
	for _, name := range []string{"one", "two"} {
		h.want("PUT", "/v1/runs/"+name, `{"pipeline":"`+name+`","input":["docs/a.pdf","docs/b.pdf"]}`, 201, "")
		h.want("GET", "/v1/runs/"+name+"/result?wait=30s", "", 200, `"state":"done"`)
	}
	page("/runs/one", ">docs/b.pdf: read</a>")
	page("/runs/two", ">docs/b.pdf</a>")
	page("/runs/two?at="+url.QueryEscape("two/each[1]"), ">docs/b.pdf</a>")
	page("/runs/two/step?path="+url.QueryEscape("two/each[1]/both/check"), ">docs/b.pdf</a>")
}
