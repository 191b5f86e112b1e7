package serve_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/mcp/server"
)

// A plan that asks has its result after the answer, also with an input and with steps before
// the question.
func TestPlanThatAsks(t *testing.T) {
	for name, tt := range map[string]struct{ plan, input string }{
		"the question is an input": {`{:nodes [{:op :ask :question {:slot/id :text} :choices ["yes" "no"] :as :way} {:op :emit :input {:out :way}}]}`, `{"text":"go?"}`},
		"the question is constant": {`{:nodes [{:op :ask :question "go?" :choices ["yes" "no"] :as :way} {:op :emit :input {:out :way :text {:slot/id :text}}}]}`, `{"text":"x"}`},
		"a call before the question": {`{:nodes [{:op :call :intent :text/greet :input {:name {:slot/id :text}} :as :hello}
			{:op :ask :question "go?" :choices ["yes" "no"] :as :way} {:op :emit :input {:out :way :hello :hello}}]}`, `{"text":"Ada"}`},
		"no input": {`{:nodes [{:op :ask :question "go?" :choices ["yes" "no"] :as :way} {:op :emit :input {:out :way}}]}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := plan.Read([]byte(tt.plan))
			if err != nil {
				t.Fatal(err)
			}
			app := &call.Applicator{Registry: greeters()}
			p, err := program.Ashlar(app, plan.Options{Slots: []string{"text"}})
			if err != nil {
				t.Fatal(err)
			}
			db, err := sqlite.Open(filepath.Join(memdir.New(t), "stone.db"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			cfg := serve.Config{
				Journal: db, Applicator: app, Pipelines: []serve.Pipeline{{Name: "asker", Ashlar: p, Result: terms.Emit}},
				Mounts: map[string]serve.Mount{"/mcp": server.Mount(server.Config{})},
			}
			h := &house{T: t}
			h.Server = serveAll(t, cfg)
			h.want("PUT", "/v1/runs/a", `{"pipeline":"asker","input":`+tt.input+`}`, 201, "")
			h.want("GET", "/v1/runs/a/result?wait=30s", "", 202, `"state":"waiting"`)
			h.want("POST", "/v1/runs/a/answers", `{"question":"plan/way","response":"yes"}`, 200, "")
			h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, `"response":"yes"`)
			for _, page := range []string{"/runs/a", "/v1/runs/a", "/v1/runs/a/events"} {
				h.want("GET", page, "", 200, "done")
			}
			request := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_result","arguments":{"run":"a"}}}`
			if _, text := h.do("POST", "/mcp", request, "Content-Type", "application/json", "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-11-25"); !strings.Contains(text, `"state":"done"`) || !strings.Contains(text, `"response":"yes"`) {
				t.Errorf("the result over MCP is %s", text)
			}
			h.Stop() // the result does not depend on what a process remembers
			h.Server = serveAll(t, cfg)
			h.want("GET", "/v1/runs/a/result", "", 200, `"response":"yes"`)
		})
	}
}

// reads counts how often all nodes of a run are read.
type reads struct {
	*sqlite.DB
	all atomic.Int32
}

func (r *reads) DAG(ctx context.Context, run string) (dag.DAG, error) {
	r.all.Add(1)
	return r.DB.DAG(ctx, run)
}

// The result of a plan is its last node, so a request for it does not read all the others.
func TestResultOfPlanIsItsLastNode(t *testing.T) {
	program, err := plan.Read([]byte(`{:nodes [{:op :call :intent :text/greet :input {:name {:slot/id :text}} :as :hello} {:op :emit :input {:out :hello}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	app := &call.Applicator{Registry: greeters()}
	p, err := program.Ashlar(app, plan.Options{Slots: []string{"text"}})
	if err != nil {
		t.Fatal(err)
	}
	kept := &reads{DB: memdb.New(t)}
	h := &house{T: t, Server: serveAll(t, serve.Config{Journal: kept, Applicator: app, Pipelines: []serve.Pipeline{{Name: "greet", Ashlar: p, Result: "stone/emit"}}})}
	h.want("PUT", "/v1/runs/a", `{"pipeline":"greet","input":{"text":"Ada"}}`, 201, "")
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, `"done"`)
	kept.all.Store(0)
	h.want("GET", "/v1/runs/a/result", "", 200, "Hello, Ada!")
	if n := kept.all.Load(); n != 0 {
		t.Errorf("all nodes were read %d times", n)
	}
}

// A run without a node that one of its steps wrote has no result: neither its input, nor an error.
func TestNoResult(t *testing.T) {
	read := func(text string) stone.Ashlar {
		program, err := plan.Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, err := program.Ashlar(&call.Applicator{Registry: greeters()}, plan.Options{Slots: []string{"text"}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	quiet := stone.Scoped("quiet", stone.Walk{}, func(_ context.Context, d dag.DAG) (dag.DAG, error) { return d, nil }, order)
	h := &house{T: t}
	h.Server = serveAll(t, serve.Config{
		Applicator: &call.Applicator{Registry: greeters()},
		Pipelines: []serve.Pipeline{
			{Name: "plan", Ashlar: read(`{:nodes [{:op :call :intent :text/greet :input {:name {:slot/id :text}} :as :hello}]}`), Result: terms.Emit},
			{Name: "input", Ashlar: quiet, Result: order.Name()},
			{Name: "last", Ashlar: quiet},
		},
		Mounts: map[string]serve.Mount{"/mcp": server.Mount(server.Config{})},
	})
	for _, name := range []string{"plan", "input", "last"} {
		h.want("PUT", "/v1/runs/"+name, `{"pipeline":"`+name+`","input":{"text":"x"}}`, 201, "")
		if done := h.run(h.want("GET", "/v1/runs/"+name+"/result?wait=30s", "", 200, `"state":"done"`)); done.Result != nil {
			t.Errorf("the result of %s is %+v, want none", name, done.Result)
		}
		h.want("GET", "/runs/"+name, "", 200, "done")
		request := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_result","arguments":{"run":"` + name + `"}}}`
		if _, text := h.do("POST", "/mcp", request, "Content-Type", "application/json", "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-11-25"); !strings.Contains(text, `"state":"done"`) {
			t.Errorf("the result over MCP is %s", text)
		}
	}
}
