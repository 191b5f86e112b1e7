package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/sandbox"
)

// modeVariable makes the test binary a server over its standard streams.
const modeVariable = "STONE_MCP_TEST_SERVER"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(modeVariable); mode {
	case "":
		os.Exit(m.Run())
	case "crash": // before it answers anything
		fmt.Fprintf(os.Stderr, "loading\ncannot log in with %s\n", os.Getenv("TOKEN"))
		os.Exit(3)
	case "old":
		oldServer(os.Getenv("HOW"))
	case "mute": // never answers, and ends with its input
		io.Copy(io.Discard, os.Stdin)
	case "stubborn": // answers nothing, and ends only when killed
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Hour)
	case "family": // starts a child that would outlive it
		child := exec.Command("sleep", "600")
		if err := child.Start(); err != nil {
			panic(err)
		}
		os.WriteFile(filepath.Join(os.Getenv("DIR"), "child"), fmt.Append(nil, child.Process.Pid), 0o600)
		fallthrough
	default:
		if err := newPeer(os.Getenv("DIR")).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

type arguments struct {
	Text string `json:"text,omitempty" jsonschema:"what to say"`
}

// started counts the calls of the tool wait that began in this process, and
// stopped those that were cancelled.
var started, stopped atomic.Int32

func yes() *bool { b := true; return &b }
func no() *bool  { b := false; return &b }

// newPeer is the server that the tests talk to. It notes in the folder what it has
// done, so that a test sees it through crashes.
func newPeer(dir string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	note := func(tool string) int {
		f, err := os.OpenFile(filepath.Join(dir, tool), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return 0
		}
		defer f.Close()
		f.WriteString(".")
		info, _ := f.Stat()
		return int(info.Size())
	}
	add := func(name string, hints *sdk.ToolAnnotations, do func(context.Context, arguments) (*sdk.CallToolResult, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "Does " + name + ".", Annotations: hints},
			func(ctx context.Context, _ *sdk.CallToolRequest, in arguments) (*sdk.CallToolResult, any, error) {
				res, err := do(ctx, in)
				return res, nil, err
			})
	}
	add("echo", &sdk.ToolAnnotations{ReadOnlyHint: true}, func(_ context.Context, in arguments) (*sdk.CallToolResult, error) {
		return says(in.Text), nil
	})
	add("pid", &sdk.ToolAnnotations{DestructiveHint: no()}, func(context.Context, arguments) (*sdk.CallToolResult, error) {
		return says(fmt.Sprint(os.Getpid())), nil
	})
	add("fail", nil, func(_ context.Context, in arguments) (*sdk.CallToolResult, error) {
		return nil, fmt.Errorf("no %s today", in.Text)
	})
	add("wait", nil, func(ctx context.Context, _ arguments) (*sdk.CallToolResult, error) {
		started.Add(1)
		<-ctx.Done()
		stopped.Add(1)
		note("cancelled")
		return nil, ctx.Err()
	})
	add("env", nil, func(_ context.Context, in arguments) (*sdk.CallToolResult, error) {
		return says(strings.Join(os.Environ(), "\n")), nil
	})
	die := func(name string, hints *sdk.ToolAnnotations) {
		add(name, hints, func(context.Context, arguments) (*sdk.CallToolResult, error) {
			if note(name) == 1 {
				os.Exit(1)
			}
			return says("survived"), nil
		})
	}
	die("die", nil)
	die("die.reading", &sdk.ToolAnnotations{ReadOnlyHint: true})
	die("die.again", &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: yes()})
	return s
}

func says(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// overStdio is the configuration of a server in a process of its own.
func overStdio(t *testing.T, mode string) Config {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Name: "peer", Command: []string{exe}, Dir: t.TempDir(), Sandbox: sandbox.Policy{Method: sandbox.Unconfined},
		Env: map[string]llm.Secret{
			modeVariable: llm.Secret(mode), "DIR": llm.Secret(t.TempDir()),
			"GORACE":     "atexit_sleep_ms=0", // it would wait a second at the end
			"GOCOVERDIR": llm.Secret(t.TempDir()),
		},
		StartTimeout: 30 * time.Second,
	}
}

func overMemory(t *testing.T) Config {
	t.Helper()
	server := newPeer(t.TempDir())
	return Config{Name: "peer", Transport: func(ctx context.Context) (sdk.Transport, error) {
		theirs, ours := sdk.NewInMemoryTransports()
		_, err := server.Connect(context.Background(), theirs, nil)
		return ours, err
	}}
}

// handler serves the peer over streamable HTTP, with sessions of its own.
func handler(t *testing.T, options *sdk.StreamableHTTPOptions) http.Handler {
	server := newPeer(t.TempDir())
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, options)
}

func serve(t *testing.T, h http.Handler) (*httptest.Server, Config) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv, Config{Name: "peer", URL: llm.Secret(srv.URL + "/mcp")}
}

// connect connects to the server, and closes it at the end of the test, when no
// goroutine may be left.
func connect(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// noLeak fails the test if goroutines are left when everything else is cleaned up.
func noLeak(t *testing.T) {
	before := goleak.IgnoreCurrent()
	// The servers of the tests keep sessions that no client can delete.
	theirs := goleak.IgnoreTopFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read")
	t.Cleanup(func() {
		var left error
		// Sessions that are idle end on their own, after their process.
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
			if left = goleak.Find(before, theirs); left == nil {
				return
			}
		}
		t.Error(left)
	})
}

func toolOf(t *testing.T, s *Server, name string) *agent.Tool {
	t.Helper()
	tools, err := s.Tools(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return tools[0].Tool
}

func called(t *testing.T, s *Server, name, text string) (string, error) {
	t.Helper()
	input, _ := json.Marshal(arguments{Text: text})
	res, err := toolOf(t, s, name).Run(t.Context(), input)
	return res.Text, err
}

func want(t *testing.T, s *Server, name, text, want string) {
	t.Helper()
	if got, err := called(t, s, name, text); got != want || err != nil {
		t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
	}
}

// atoi reads the number of a process; 0 would be our own group.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 2 {
		panic(fmt.Sprintf("%q is no number of a process", s))
	}
	return n
}

// eventually waits for something that another goroutine or process does.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 15 s still not: %s", what)
		}
	}
}
