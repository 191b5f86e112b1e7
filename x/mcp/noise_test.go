//go:build unix

package mcp

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/boxtest"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/sandbox"
)

// TestNoise has servers print what is no message between their messages.
func TestNoise(t *testing.T) {
	for _, noise := range []string{"[info] fetching the weather", `{"level":"info","msg":"fetching"}`, "Weather server\r\n\n 1.2", `{"a": 1`, "[]", "null",
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`, strings.Repeat("x", 70_000)} {
		cfg := overStdio(t, "old")
		cfg.Env["NOISE"], cfg.Env["HOW"] = llm.Secret(noise), "method not found"
		s := connect(t, cfg)
		want(t, s, "today", "", "Sun")
		s.Close()
	}
}

func TestMessages(t *testing.T) {
	const one, two = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/x"}`
	for _, tt := range []struct{ in, out, noise string }{
		{one + "\n" + two + "\n", one + "\n" + two + "\n", ""},
		{"hello\n" + one + "\r\n\r\n \n" + two, one + "\r\n" + two, "hello\n \n"},
		{"[" + one + "]\n[info] x\n[]\n", "[" + one + "]\n", "[info] x\n[]\n"},
		{`{"id":1}` + "\n" + `{"jsonrpc":"1.0","id":1}` + "\n" + one, one, `{"id":1}` + "\n" + `{"jsonrpc":"1.0","id":1}` + "\n"},
		{"no end", "", "no end"},
		{`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("y", 200_000) + `"}` + "\n" + one, `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("y", 200_000) + `"}` + "\n" + one, ""},
	} {
		p := &process{}
		m := &messages{lines: newLines(strings.NewReader(tt.in)), noise: &p.stderr}
		out, err := io.ReadAll(m)
		if string(out) != tt.out || p.stderr.String() != tt.noise || err != nil {
			t.Errorf("%.80q: got %.80q, noise %q, %v", tt.in, out, p.stderr.String(), err)
		}
	}
	if _, err := io.ReadAll(&messages{lines: newLines(io.LimitReader(endless{}, 2*maxFrame)), noise: io.Discard}); err == nil || !strings.Contains(err.Error(), "a message has more than") {
		t.Errorf("got %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestReason looks for the line of a crash that says why.
func TestReason(t *testing.T) {
	for _, tt := range []struct{ output, want string }{
		{"", ""},
		{"loading\ncannot log in\n", "cannot log in"},
		{"node:internal/modules/cjs/loader:1148\n  throw err;\n  ^\n\nError: Cannot find module 'x'\nRequire stack:\n- /a/b.js\n    at Module._load (node:internal)\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v20.1.0\n", "Error: Cannot find module 'x'"},
		{"/app/index.js:3\nthrow new Error(\"no key\");\n^\n\nTypeError: x is not a function\n    at Object.<anonymous>\n\nNode.js v22.0.0", "TypeError: x is not a function"},
		{"Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    import x\nModuleNotFoundError: No module named 'x'\n", "ModuleNotFoundError: No module named 'x'"},
		{"Traceback (most recent call last):\n  File \"a.py\", line 1\nmcp.shared.exceptions.McpError: Connection closed\nsys:1: RuntimeWarning: coroutine was never awaited\n", "mcp.shared.exceptions.McpError: Connection closed"},
		{"panic: no database\n\ngoroutine 1 [running]:\nmain.main()\n\t/a/main.go:3 +0x2c\nexit status 2\n", "panic: no database"},
		{"thread 'main' panicked at src/main.rs:2:5:\nno token\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n", "thread 'main' panicked at src/main.rs:2:5: no token"},
		{"npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/x\nnpm error 404  'x@*' is not in this registry.\nnpm error A complete log of this run can be found in: /root/x.log\n", "npm error 404  'x@*' is not in this registry."},
		{"Exception in thread \"main\" java.lang.IllegalStateException: no key\n\tat a.B.main(B.java:1)\n", "Exception in thread \"main\" java.lang.IllegalStateException: no key"},
		{"listening\nno errors so far\n", "no errors so far"},
	} {
		if got := reason(tt.output); got != tt.want {
			t.Errorf("got %q, want %q of\n%s", got, tt.want, tt.output)
		}
	}
}

// TestNoNetwork has a server look for the network that its sandbox does not grant.
func TestNoNetwork(t *testing.T) {
	boxtest.NeedAny(t)
	for _, tt := range []struct {
		script, want string
		policy       sandbox.Policy
	}{
		{`echo "npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org" >&2; exit 1`, "(it runs confined, without network: ", sandbox.Policy{}},
		{`sleep 5; exit 1`, "(it runs confined, without network: ", sandbox.Policy{}},
		{`echo "no key" >&2; exit 1`, "", sandbox.Policy{}},
		{`echo "getaddrinfo EAI_AGAIN registry.npmjs.org" >&2; exit 1`, "", sandbox.Policy{Method: sandbox.Unconfined}},
	} {
		c, _ := shellServer(t, tt.policy, tt.script)
		c.StartTimeout = 2 * time.Second
		_, err := Connect(t.Context(), c)
		if start, ok := errors.AsType[*StartError](err); !ok || strings.Contains(start.Error(), "network") != (tt.want != "") || !strings.Contains(start.Error(), tt.want) {
			t.Errorf("%s: got %v", tt.script, err)
		}
	}
}
