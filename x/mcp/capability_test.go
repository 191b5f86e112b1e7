package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/sandbox"
	"github.com/stonelayer/stone/stonetest"
	"github.com/stonelayer/stone/x/mcp"
)

type city struct {
	City string `json:"city"`
}

type sky struct {
	Sky    string `json:"sky"`
	Degree int    `json:"degree"`
}

// local is a server in the same program.
func local() mcp.Config {
	server := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "today"}, func(ctx context.Context, _ *sdk.CallToolRequest, in city) (*sdk.CallToolResult, sky, error) {
		switch in.City {
		case "Nowhere":
			return nil, sky{}, errors.New("there is no such city")
		case "Slow":
			<-ctx.Done()
			return nil, sky{}, ctx.Err()
		}
		return nil, sky{"sun", 21}, nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "say"}, func(_ context.Context, _ *sdk.CallToolRequest, in city) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "Sun in " + in.City + "."}}}, nil, nil
	})
	return mcp.Config{Name: "weather", Transport: func(context.Context) (sdk.Transport, error) {
		theirs, ours := sdk.NewInMemoryTransports()
		_, err := server.Connect(context.Background(), theirs, nil)
		return ours, err
	}}
}

func ExampleOnDemand() {
	server := mcp.NewOnDemand(local(), call.Scope{})
	defer server.Close()
	today := server.Capability(call.Metadata{}, "today")
	reply, err := today.Invoke(context.Background(), &call.Request{Input: call.JSON(`{"city":"Bern"}`)})
	fmt.Println(today.ID, string(reply.Out), err)
	// Output: mcp/today {"degree":21,"sky":"sun"} <nil>
}

func TestCapability(t *testing.T) {
	stonetest.TestCapability(t, stonetest.Capability{
		Make: func(t *testing.T) call.Capability {
			server := mcp.NewOnDemand(local(), call.Scope{})
			t.Cleanup(func() { server.Close() })
			return server.Capability(call.Metadata{}, "today")
		},
		OK:   &call.Request{Input: call.JSON(`{"city":"Bern"}`)},
		Slow: &call.Request{Input: call.JSON(`{"city":"Slow"}`)},
	})
}

// What a server reports of a call is heard before the call ends, and at most ten times a
// second.
func TestProgress(t *testing.T) {
	heard := make(chan bool, 1)
	server := sdk.NewServer(&sdk.Implementation{Name: "slow", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "count"}, func(ctx context.Context, r *sdk.CallToolRequest, in city) (*sdk.CallToolResult, any, error) {
		for n := range 500 {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Message: "page " + strings.Repeat("1", 1000), Progress: float64(n + 1), Total: 500,
			}); err != nil {
				return nil, nil, err
			}
			if n == 0 {
				<-heard
			}
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil, nil
	})
	start := time.Now()
	s := mcp.NewOnDemand(mcp.Config{Name: "slow", Transport: func(context.Context) (sdk.Transport, error) {
		theirs, ours := sdk.NewInMemoryTransports()
		_, err := server.Connect(context.Background(), theirs, nil)
		return ours, err
	}}, call.Scope{})
	defer s.Close()
	app := &call.Applicator{Registry: call.NewRegistry(s.Capability(call.Metadata{}, "count"))}
	var said []event.Progress
	resp, _ := app.Act(t.Context(), call.Trace{ID: "r"}, call.Spec{Intent: "x/y", Input: call.From(dag.Derive(dag.Nothing, func(struct{}) city { return city{"Bern"} }))}, stone.Config{
		Grant: []string{"net", "process"},
		Watch: event.Func(slog.LevelInfo, func(e event.Event) {
			if d, ok := e.Data.(event.Progress); ok {
				if said = append(said, d); len(said) == 1 {
					heard <- true
				}
			}
		}),
	})
	if resp.Err != nil || string(resp.Reply.Out) != `{"text":"done"}` {
		t.Fatal(resp.Reply, resp.Err)
	}
	first := said[0]
	if !strings.HasPrefix(first.Message, "page 1") || len(first.Message) > 600 || first.Done != 1 || first.Total != 500 {
		t.Errorf("heard %+v", first)
	}
	if most := 1 + int(time.Since(start)/(100*time.Millisecond)); len(said) > most {
		t.Errorf("%d events, want %d at most", len(said), most)
	}
}

func TestAnswers(t *testing.T) {
	server := mcp.NewOnDemand(local(), call.Scope{})
	defer server.Close()
	for _, test := range []struct{ tool, input, want string }{
		{"say", `{"city":"Bern"}`, `{"text":"Sun in Bern."}`},
		{"today", `{"city":"Nowhere"}`, `runtime/invoke-failed: there is no such city`},
		{"today", `{"town":"Bern"}`, `input/schema-invalid: the input does not fit the schema of the tool today`},
		{"today", `{}`, `input/schema-invalid: `},
		{"say", `{"city":"` + strings.Repeat("x", 8<<20) + `"}`, `runtime/invoke-failed: the result has 8388616 bytes of text: want at most 8388608`},
		{"todya", `{}`, `runtime/unavailable: `},
	} {
		reply, err := server.Capability(call.Metadata{}, test.tool).Invoke(t.Context(), &call.Request{Input: call.JSON(test.input)})
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = string(reply.Out)
		}
		if !strings.HasPrefix(got, test.want) || strings.Contains(got, "\n") {
			t.Errorf("%s %s: %s, want %s", test.tool, test.input, got, test.want)
		}
	}
}

func TestServer(t *testing.T) {
	for _, test := range []struct {
		config mcp.Config
		scope  call.Scope
		want   string
	}{
		{mcp.Config{}, call.Scope{}, "no server"},
		{mcp.Config{Command: []string{"node"}}, call.Scope{}, "not an absolute path"},
		{mcp.Config{Command: []string{"/bin/true"}}, call.Scope{Process: call.Process{}}, "not in scope"},
		{mcp.Config{URL: "http://127.0.0.1:1/mcp?key=s3cret"}, call.Scope{Net: call.Net{"https://example.com"}}, "not in scope"},
		{mcp.Config{Command: []string{"/bin/false"}}, call.Scope{}, ""},
		{mcp.Config{URL: "http://127.0.0.1:1/mcp?key=s3cret", StartTimeout: time.Second}, call.Scope{}, ""},
	} {
		server := mcp.NewOnDemand(test.config, test.scope)
		_, err := server.Capability(call.Metadata{}, "x").Invoke(t.Context(), &call.Request{})
		if err == nil || !strings.HasPrefix(err.Error(), "runtime/unavailable: ") || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v: want %s", err, test.want)
		}
		server.Close()
	}
	server := mcp.NewOnDemand(local(), call.Scope{})
	today := server.Capability(call.Metadata{}, "today")
	req := &call.Request{Input: call.JSON(`{"city":"Bern"}`)}
	if _, err := today.Invoke(t.Context(), req); err != nil {
		t.Error(err)
	}
	server.Close()
	server.Close()
	if _, err := today.Invoke(t.Context(), req); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
	if _, err := mcp.NewOnDemand(local(), call.Scope{}).Capability(call.Metadata{}, "").Invoke(t.Context(), req); err == nil {
		t.Error("no tool is no error")
	}
}

// TestPeer asks a server that others wrote.
func TestPeer(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(peer.Module(t, "@modelcontextprotocol/server-filesystem"), "dist", "index.js")
	peer.Held(t, "@modelcontextprotocol/server-filesystem", "its tools as capabilities")
	policy := sandbox.Policy{Writable: []string{dir}, ReadOnly: []string{filepath.Join(path, "..", "..", "..", "..", "..")}}
	server := mcp.NewOnDemand(mcp.Config{Command: []string{"/usr/bin/env", "node", path, dir}, Sandbox: policy}, call.Scope{Process: call.Process{"/usr/bin/env"}})
	defer server.Close()
	list := server.Capability(call.Metadata{}, "list_directory")
	for _, test := range []struct{ path, want string }{{dir, ""}, {"/etc", "Access denied"}} {
		_, err := list.Invoke(t.Context(), &call.Request{Input: call.JSON(fmt.Sprintf(`{"path":%q}`, test.path))})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.path, err, test.want)
		}
	}
}

func TestScopeThatCannotBeHeld(t *testing.T) {
	for _, s := range []call.Scope{{FS: call.FS{"/tmp"}}, {Net: call.Net{}}, {Process: call.Process{}}} {
		server := mcp.NewOnDemand(mcp.Config{Command: []string{"/bin/true"}}, s)
		if server.Check() == nil {
			t.Errorf("a program is started with the scope %+v", s)
		}
	}
}
