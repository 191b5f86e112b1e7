//go:build unix

package mcp

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/sandbox"
	"github.com/stonelayer/stone/schema"
)

// script returns the command of a server that others wrote, or skips the test.
func script(t *testing.T, name string, args ...string) []string {
	t.Helper()
	peer.Held(t, "@modelcontextprotocol/"+name, "its tools in an agent")
	return append([]string{"node", filepath.Join(peer.Module(t, "@modelcontextprotocol/"+name), "dist", "index.js")}, args...)
}

func run(t *testing.T, s *Server, name, input string) (string, map[string]any, error) {
	t.Helper()
	res, err := toolOf(t, s, name).Run(t.Context(), json.RawMessage(input))
	return res.Text, res.Meta, err
}

// granted is what a peer may use: its modules, and node where that is not a program
// of the system.
func granted(t *testing.T, name string, writable ...string) sandbox.Policy {
	t.Helper()
	node, err := filepath.EvalSymlinks(need.Program(t, "node"))
	if err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(peer.Module(t, "@modelcontextprotocol/"+name), "..", "..")
	return sandbox.Policy{Writable: writable, ReadOnly: []string{filepath.Dir(modules), filepath.Dir(filepath.Dir(node))}}
}

func TestPeerFilesystem(t *testing.T) {
	noLeak(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := connect(t, Config{Command: script(t, "server-filesystem", dir), Sandbox: granted(t, "server-filesystem", dir), Harmless: []string{"read_text_file"}})
	path := strconv.Quote(filepath.Join(dir, "note.txt"))
	for _, tt := range []struct{ tool, input, want, err string }{
		{"write_file", `{"path":` + path + `,"content":"Grüezi\n"}`, "Successfully wrote", ""},
		{"read_text_file", `{"path":` + path + `}`, "Grüezi\n", ""},
		{"list_directory", `{"path":` + strconv.Quote(dir) + `}`, "[FILE] note.txt", ""},
		{"read_text_file", `{"path":"/etc/passwd"}`, "", "Access denied"},
		{"read_text_file", `{}`, "", "path"},
	} {
		text, _, err := run(t, s, tt.tool, tt.input)
		if !strings.Contains(text, tt.want) || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s %s: got %q, %v", tt.tool, tt.input, text, err)
		}
	}
	if !toolOf(t, s, "read_text_file").Parallel || toolOf(t, s, "write_file").Parallel {
		t.Error("want reading to be parallel, and writing not")
	}
}

func TestPeerEverything(t *testing.T) {
	everything(t, Config{Command: script(t, "server-everything"), Sandbox: granted(t, "server-everything")})
}

func TestPeerEverythingHTTP(t *testing.T) {
	need.Time(t)
	port, cmd := startHTTP(t)
	cfg := Config{URL: llm.Secret("http://127.0.0.1:" + port + "/mcp")}
	everything(t, cfg)

	// The same after the server was killed and started again: it knows no sessions.
	s := connect(t, cfg)
	echo := toolOf(t, s, "echo")
	cmd.Process.Kill()
	cmd.Wait()
	echo.Run(t.Context(), json.RawMessage(`{"message":"x"}`)) // may break with the connection that was kept
	if _, err := echo.Run(t.Context(), json.RawMessage(`{"message":"x"}`)); err == nil || errors.Is(err, ErrUncertain) {
		t.Errorf("without a server: got %v", err)
	}
	serveHTTP(t, port)
	if res, err := echo.Run(t.Context(), json.RawMessage(`{"message":"x"}`)); err != nil || res.Text != "Echo: x" {
		t.Errorf("got %q, %v", res.Text, err)
	}
}

func startHTTP(t *testing.T) (port string, cmd *exec.Cmd) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(l.Addr().String())
	l.Close()
	return port, serveHTTP(t, port)
}

// serveHTTP starts the server. It binds every interface and has no option to bind
// fewer, which a patch of Node's listen does instead.
func serveHTTP(t *testing.T, port string) *exec.Cmd {
	t.Helper()
	bind := filepath.Join(t.TempDir(), "bind.cjs")
	const patch = `const net = require("net"), listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
	return listen.call(this, port, "127.0.0.1", ...rest.filter((a) => typeof a === "function"));
};`
	if err := os.WriteFile(bind, []byte(patch), 0o600); err != nil {
		t.Fatal(err)
	}
	args := script(t, "server-everything", "streamableHttp")
	cmd := exec.Command(args[0], append([]string{"--require", bind}, args[1:]...)...)
	cmd.Env = append(os.Environ(), "PORT="+port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	eventually(t, "the server listens", func() bool {
		conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return cmd
}

func everything(t *testing.T, cfg Config) {
	noLeak(t)
	cfg.Env = map[string]llm.Secret{"TOKEN": "hunter22"}
	s := connect(t, cfg)
	defer s.Close()
	tools, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range tools {
		names = append(names, m.Tool.Name)
		if _, err := schema.Parse(m.Tool.Schema); err != nil {
			t.Errorf("%s: %v", m.Tool.Name, err)
		}
	}
	t.Logf("%d tools: %s", len(names), strings.Join(names, " "))
	for _, tt := range []struct{ tool, input, want, meta, err string }{
		{"echo", `{"message":"Grüezi 🌟"}`, "Echo: Grüezi 🌟", "", ""},
		{"get-sum", `{"a":2,"b":3}`, "5", "", ""},
		{"get-sum", `{"a":"two","b":3}`, "", "", "expected number"},
		{"get-tiny-image", `{}`, "[image, image/png, ", "", ""},
		{"get-structured-content", `{"location":"New York"}`, `"temperature"`, metaStructured, ""},
		{"get-resource-reference", `{"resourceType":"Text","resourceId":1}`, "[resource demo://", metaContent, ""},
		{"get-resource-links", `{"count":2}`, "[resource demo://", metaContent, ""},
	} {
		text, meta, err := run(t, s, tt.tool, tt.input)
		if !strings.Contains(text, tt.want) || tt.meta != "" && meta[tt.meta] == nil || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s %s: got %q, meta %v, %v", tt.tool, tt.input, text, meta, err)
		}
	}
	if res, err := toolOf(t, s, "get-tiny-image").Run(t.Context(), json.RawMessage("{}")); err != nil || len(res.Media) != 1 || res.Media[0].Type != "image/png" {
		t.Errorf("the picture is shown as %v, %v", res.Media, err)
	}
	slow := toolOf(t, s, "trigger-long-running-operation")
	s.cfg.Timeout = 100 * time.Millisecond
	if _, err := slow.Run(t.Context(), json.RawMessage(`{"duration":5,"steps":5}`)); !errors.Is(err, ErrUncertain) {
		t.Errorf("got %v", err)
	}
	s.cfg.Timeout = time.Minute
	if text, _, err := run(t, s, "echo", `{"message":"after"}`); text != "Echo: after" || err != nil {
		t.Errorf("after a timeout: got %q, %v", text, err)
	}
	if s.current.cmd == nil {
		return
	}
	s.current.cmd.end()
	<-s.current.cmd.exited
	if text, _, err := run(t, s, "echo", `{"message":"again"}`); text != "Echo: again" || err != nil {
		t.Errorf("after a kill: got %q, %v", text, err)
	}
}
