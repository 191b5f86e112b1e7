package serve_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/serve"
)

// The page of a run offers its result as a file: a text as it is, anything else as JSON.
func TestResultsAreDownloaded(t *testing.T) {
	table, said, total := dag.NewType[string]("table"), dag.NewType[agent.Text]("said"), dag.NewType[map[string]int]("total")
	made := func(name string, a stone.Ashlar) serve.Pipeline { return serve.Pipeline{Name: name, Ashlar: a} }
	h := &house{T: t, Server: serveAll(t, serve.Config{Journal: memdb.New(t), Pipelines: []serve.Pipeline{
		made("csv", stone.Func0("csv", table, func(context.Context) (string, error) { return "file,n\na.pdf,1\n", nil })),
		made("says", stone.Func0("says", said, func(context.Context) (agent.Text, error) { return agent.Text{Text: "Hello."}, nil })),
		made("sum", stone.Func0("sum", total, func(context.Context) (map[string]int, error) { return map[string]int{"n": 3}, nil })),
		made("asks", stone.Ask("asks", dag.Nothing, dag.NewType[stone.Answer]("reply"), func(struct{}) string { return "Really?" })),
	}})}
	for name, want := range map[string][3]string{
		"csv":  {"csv.txt", "text/plain; charset=utf-8", "file,n\na.pdf,1\n"},
		"says": {"says.txt", "text/plain; charset=utf-8", "Hello."},
		"sum":  {"sum.json", "application/json", "{\n  \"n\": 3\n}\n"},
	} {
		h.want("PUT", "/v1/runs/"+name, `{"pipeline":"`+name+`"}`, 201, "")
		h.want("GET", "/v1/runs/"+name+"/result?wait=30s", "", 200, "")
		h.want("GET", "/runs/"+name, "", 200, `/runs/`+name+`/result" download>`)
		resp, err := http.Get(h.URL + "/runs/" + name + "/result")
		if err != nil {
			t.Fatal(err)
		}
		_, body := h.do("GET", "/runs/"+name+"/result", "")
		if got := [3]string{`attachment; filename="` + want[0] + `"`, want[1], want[2]}; resp.Header.Get("Content-Disposition") != got[0] || resp.Header.Get("Content-Type") != got[1] || body != got[2] {
			t.Errorf("%s: %v %q, want %q", name, resp.Header, body, got)
		}
		resp.Body.Close()
	}
	h.want("PUT", "/v1/runs/asks", `{"pipeline":"asks"}`, 201, "")
	h.want("GET", "/v1/runs/asks/result?wait=30s", "", 202, "")
	h.want("GET", "/runs/asks/result", "", 404, "has no result")
}
