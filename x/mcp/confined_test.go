//go:build unix

package mcp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/boxtest"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/sandbox"
)

// shellServer is the configuration of a server that does something before it serves.
func shellServer(t *testing.T, policy sandbox.Policy, script string) (Config, string) {
	t.Helper()
	c := overStdio(t, "serve")
	dir := string(c.Env["DIR"])
	c.Sandbox = policy
	c.Sandbox.ReadOnly = append(c.Sandbox.ReadOnly, c.Command[0])
	c.Command = []string{"/bin/sh", "-c", script + "\nexec " + c.Command[0]}
	return c, dir
}

// Without a grant a server reaches no file and no key of the program.
func TestConfinedByDefault(t *testing.T) {
	method := boxtest.NeedAny(t)
	c, dir := shellServer(t, sandbox.Policy{}, `(echo x > "$DIR/made"; cat "$DIR/secret" /proc/*/environ) >&2; echo served >&2`)
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := connect(t, c)
	want(t, s, "echo", "hello", "hello")
	if result, err := toolOf(t, s, "echo").Run(t.Context(), []byte(`{"text":"hello"}`)); err != nil || result.Meta[metaSandbox] != string(method) {
		t.Errorf("the record of the tool says %v, %v, want %s", result.Meta, err, method)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Errorf("%s: the server made a file", method)
	}
	c, dir = shellServer(t, sandbox.Policy{}, `cat "$DIR/secret"; exit 7`)
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Connect(t.Context(), c); err == nil || strings.Contains(err.Error(), "the secret") || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("error %v", err)
	}
	c, dir = shellServer(t, sandbox.Policy{}, `echo x > "$DIR/made"`)
	c.Sandbox.Writable = []string{dir}
	want(t, connect(t, c), "echo", "hello", "hello")
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Errorf("what is granted cannot be used: %v", err)
	}
}

// A child that has left the server's session ends with it too.
func TestDaemonEnds(t *testing.T) {
	for _, m := range []sandbox.Method{sandbox.Bubblewrap, sandbox.Landlock, sandbox.Unconfined} {
		t.Run(string(m), func(t *testing.T) {
			boxtest.Need(t, m)
			c, dir := shellServer(t, sandbox.Policy{Method: m}, `beat() { while :; do echo x >> "$DIR/beat"; sleep 0.02; done; }
				if command -v setsid >/dev/null; then setsid sh -c 'while :; do echo x >> "$DIR/beat"; sleep 0.02; done' </dev/null >/dev/null 2>&1 & fi
				beat </dev/null >/dev/null 2>&1 &`)
			c.Sandbox.Writable = []string{dir}
			c.Env["DIR"] = llm.Secret(dir)
			s, err := Connect(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			beat := filepath.Join(dir, "beat")
			eventually(t, "the daemon beats", func() bool { _, err := os.Stat(beat); return err == nil })
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(beat) // it was there
			time.Sleep(300 * time.Millisecond)
			if after, _ := os.ReadFile(beat); len(after) != len(before) {
				t.Errorf("the daemon is alive")
			}
		})
	}
}
