//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/tool"
)

// TestTransports does the same over every way to a server.
func TestTransports(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  func(t *testing.T) Config
	}{
		{"stdio", func(t *testing.T) Config { return overStdio(t, "serve") }},
		{"memory", overMemory},
		{"http", func(t *testing.T) Config { _, cfg := serve(t, handler(t, nil)); return cfg }},
		{"http, plain JSON", func(t *testing.T) Config {
			_, cfg := serve(t, handler(t, &sdk.StreamableHTTPOptions{JSONResponse: true}))
			return cfg
		}},
		{"http, stateless", func(t *testing.T) Config {
			_, cfg := serve(t, handler(t, &sdk.StreamableHTTPOptions{Stateless: true}))
			return cfg
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			cfg := tt.cfg(t)
			cfg.Harmless = []string{"echo"}
			s := connect(t, cfg)
			want(t, s, "echo", "Grüezi <b>", "Grüezi <b>")
			if _, err := called(t, s, "fail", "luck"); err == nil || err.Error() != "no luck today" {
				t.Errorf("fail: got %v", err)
			}
			echo := toolOf(t, s, "echo")
			for input, want := range map[string]string{`{"text":7}`: "text", `{"text"`: "the arguments of echo are no JSON"} {
				if _, err := echo.Run(t.Context(), json.RawMessage(input)); err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrUncertain) {
					t.Errorf("%s: got %v", input, err)
				}
			}
			if !echo.Parallel || toolOf(t, s, "fail").Parallel || toolOf(t, s, "die.reading").Parallel {
				t.Error("want echo to be parallel, and no other")
			}
			const schema = `{"additionalProperties":false,"properties":{"text":{"description":"what to say","type":"string"}},"type":"object"}`
			if string(echo.Schema) != schema || echo.Description != "Does echo." {
				t.Errorf("got %s %q\nwant %s", echo.Schema, echo.Description, schema)
			}
			var wait sync.WaitGroup
			for range 20 {
				wait.Go(func() { want(t, s, "echo", "all at once", "all at once") })
			}
			wait.Wait()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if _, err := echo.Run(t.Context(), nil); !errors.Is(err, ErrClosed) {
				t.Errorf("after Close: got %v", err)
			}
		})
	}
}

func TestToolSelection(t *testing.T) {
	cfg := overMemory(t)
	cfg.Prefix = "my."
	s := connect(t, cfg)
	for _, tt := range []struct {
		names []string
		want  string // offered names, or the error
	}{
		{nil, "my_die my_die_again my_die_reading my_echo my_env my_fail my_pid my_wait"},
		{[]string{"fail", "die.reading"}, "my_fail my_die_reading"},
		{[]string{"ecko"}, `mcp: the server "peer" has no tool "ecko": did you mean "echo"?`},
		{[]string{"my.echo"}, `mcp: the server "peer" has no tool "my.echo": it has die, die.again, die.reading, echo, env, fail, pid, wait`},
	} {
		tools, err := s.Tools(t.Context(), tt.names...)
		var got []string
		for _, m := range tools {
			got = append(got, m.Tool.Name)
			if m.Name != m.Tool.Name || !slices.Equal(m.Tool.Effects, []string{"net"}) {
				t.Errorf("%s: middleware %q, effects %q", m.Tool.Name, m.Name, m.Tool.Effects)
			}
		}
		if text := strings.Join(got, " "); text != tt.want && (err == nil || err.Error() != tt.want) {
			t.Errorf("%q: got %q, %v\nwant %q", tt.names, text, err, tt.want)
		}
	}
}

func TestApprove(t *testing.T) {
	var asked []string
	cfg := overMemory(t)
	cfg.Harmless = []string{"echo"}
	cfg.Approver.Approve = func(_ context.Context, call tool.Call) (tool.Decision, error) {
		asked = append(asked, call.Tool)
		return tool.Decision{Allowed: call.Tool == "fail"}, nil
	}
	s := connect(t, cfg)
	want(t, s, "echo", "a", "a")
	for _, name := range []string{"pid", "die.reading"} { // which says that it is not destructive, or read-only
		if text, err := called(t, s, name, ""); !strings.HasPrefix(text, strings.ReplaceAll(name, ".", "_")+" did not run") || err != nil {
			t.Errorf("got %q, %v", text, err)
		}
	}
	if text, err := called(t, s, "die", ""); !strings.HasPrefix(text, "die did not run") || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := called(t, s, "fail", "luck"); err == nil || err.Error() != "no luck today" {
		t.Error(err)
	}
	if !slices.Equal(asked, []string{"pid", "die_reading", "die", "fail"}) {
		t.Errorf("asked about %q", asked)
	}
}

// TestDeathBetweenCalls kills the server between calls.
func TestDeathBetweenCalls(t *testing.T) {
	noLeak(t)
	s := connect(t, overStdio(t, "serve"))
	var last string
	for range 3 {
		text, err := called(t, s, "pid", "")
		if err != nil || text == last {
			t.Fatalf("got %q, %v after %q", text, err, last)
		}
		if err := syscall.Kill(atoi(text), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		last = text
	}
}

// TestDeathDuringCall has the server die during the first tool call.
func TestDeathDuringCall(t *testing.T) {
	for _, tt := range []struct {
		tool, want string
		uncertain  bool
		done       string // how often the server began it, in dots
	}{
		{"die", "", true, "."},
		{"die.reading", "survived", false, ".."},
		{"die.again", "", true, "."}, // whatever it says of itself
	} {
		t.Run(tt.tool, func(t *testing.T) {
			noLeak(t)
			cfg := overStdio(t, "serve")
			cfg.Harmless = []string{"die.reading"}
			s := connect(t, cfg)
			got, err := called(t, s, tt.tool, "")
			if got != tt.want || errors.Is(err, ErrUncertain) != tt.uncertain || (err != nil) != tt.uncertain {
				t.Errorf("got %q, %v", got, err)
			}
			done, _ := os.ReadFile(filepath.Join(string(cfg.Env["DIR"]), tt.tool))
			if string(done) != tt.done {
				t.Errorf("the server began it %q times, want %q", done, tt.done)
			}
			want(t, s, "echo", "back", "back")
		})
	}
}

// TestFreeCodes has the server answer with codes that the protocol library gives a
// meaning of its own: such a call was answered, and must not be sent again.
func TestFreeCodes(t *testing.T) {
	for _, code := range []int64{-32001, -32003, -32004, -32005} {
		var calls int
		cfg := Config{Name: "peer", Transport: func(context.Context) (sdk.Transport, error) {
			server := newPeer(t.TempDir())
			server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
				return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
					if method != "tools/call" {
						return next(ctx, method, req)
					}
					calls++
					return nil, &jsonrpc.Error{Code: code, Message: "quota used up"}
				}
			})
			theirs, ours := sdk.NewInMemoryTransports()
			_, err := server.Connect(context.Background(), theirs, nil)
			return ours, err
		}}
		if _, err := called(t, connect(t, cfg), "fail", ""); calls != 1 || err == nil || !strings.Contains(err.Error(), "quota used up") {
			t.Errorf("%d: got %v after %d calls", code, err, calls)
		}
	}
}

// TestDeathsAtRandom kills the server under many callers. Every call is answered
// rightly or says that it is uncertain, and in the end the server is there.
func TestDeathsAtRandom(t *testing.T) {
	noLeak(t)
	s := connect(t, overStdio(t, "serve"))
	pid, echo := toolOf(t, s, "pid"), toolOf(t, s, "echo")
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 30 {
				if res, err := echo.Run(t.Context(), json.RawMessage(`{"text":"x"}`)); err == nil && res.Text != "x" || err != nil && !errors.Is(err, ErrUncertain) {
					t.Errorf("got %q, %v", res.Text, err)
				}
			}
		})
	}
	wait.Go(func() {
		for range 4 {
			res, err := pid.Run(t.Context(), nil)
			if err != nil {
				continue
			}
			syscall.Kill(atoi(res.Text), syscall.SIGKILL)
		}
	})
	wait.Wait()
	want(t, s, "echo", "alive", "alive")
}

func TestStartErrors(t *testing.T) {
	crash := overStdio(t, "crash")
	crash.Env["TOKEN"] = "hunter22"
	mute := overStdio(t, "mute")
	mute.StartTimeout = 100 * time.Millisecond
	folder := overStdio(t, "serve")
	folder.Dir = "/does/not/exist"
	for _, tt := range []struct {
		name string
		cfg  Config
		want string
		is   error
	}{
		{"crash", crash, `mcp: the server "peer" did not start: the command exited: exit status 3; it said: cannot log in with [redacted]`, nil},
		{"mute", mute, `mcp: the server "peer" did not start: no answer within 100ms: context deadline exceeded`, context.DeadlineExceeded},
		{"no command", Config{Command: []string{"stone-no-such-server"}}, `mcp: the server "stone-no-such-server" did not start: exec: "stone-no-such-server": executable file not found in $PATH`, nil},
		{"no folder", folder, `mcp: the server "peer" did not start: stat /does/not/exist: no such file or directory`, os.ErrNotExist},
		{"nothing", Config{}, `mcp: the Config sets 0 of Command, URL and Transport: set one`, nil},
		{"both", Config{Command: []string{"a"}, URL: "http://b"}, `mcp: the Config sets 2 of Command, URL and Transport: set one`, nil},
		{"bad URL", Config{URL: "ftp://key@host"}, `mcp: Config.URL is not an http or https URL with a host`, nil},
		{"bound", Config{URL: "http://host", Timeout: -1}, `mcp: the Config of "host" has a negative limit: want zero for the default`, nil},
		{"refused", Config{URL: "http://127.0.0.1:1/secret-path?key=hunter22", Header: map[string]llm.Secret{"Authorization": "Bearer abcdef"}},
			`mcp: the server "127.0.0.1:1" did not start: calling "initialize": sending "initialize": rejected by transport: Post "http://127.0.0.1:1/[redacted]": dial tcp 127.0.0.1:1: connect: connection refused`, syscall.ECONNREFUSED},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			_, err := Connect(t.Context(), tt.cfg)
			if err == nil || err.Error() != tt.want || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			tools := Tools(tt.cfg)
			if len(tools) != 1 || tools[0].Tool.Err == nil || tools[0].Tool.Err.Error() != tt.want {
				t.Errorf("the lazy form has %v", tools[0].Tool.Err)
			}
		})
	}
	_, err := Connect(t.Context(), crash)
	if start, ok := errors.AsType[*StartError](err); !ok || start.Stderr != "loading\ncannot log in with [redacted]\n" {
		t.Errorf("got %#v", err)
	}
}

func TestTimeoutAndCancel(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  func(t *testing.T) Config
	}{
		{"memory", overMemory},
		{"http", func(t *testing.T) Config { _, cfg := serve(t, handler(t, nil)); return cfg }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			s := connect(t, tt.cfg(t))
			before, during := stopped.Load(), started.Load()
			// On a busy machine the call may time out before the server has started it: try again with more time.
			for limit := 50 * time.Millisecond; started.Load() == during; limit *= 2 {
				s.cfg.Timeout = limit
				_, err := called(t, s, "wait", "")
				text := fmt.Sprintf(`the server "peer" did not answer within %v and the call was cancelled; it may or may not have been done: check before calling it again`, limit)
				if !errors.Is(err, ErrUncertain) || err.Error() != text {
					t.Fatalf("got %v", err)
				}
			}
			eventually(t, "cancelled at the server", func() bool { return stopped.Load() > before })
			s.cfg.Timeout = time.Minute
			want(t, s, "echo", "still there", "still there")

			ctx, cancel := context.WithCancel(t.Context())
			before, during = stopped.Load(), started.Load()
			go func() {
				for started.Load() == during {
					runtime.Gosched()
				}
				cancel()
			}()
			if _, err := toolOf(t, s, "wait").Run(ctx, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			eventually(t, "cancelled at the server", func() bool { return stopped.Load() > before })
		})
	}
}

// TestHungServer stops the process of the server, which then neither answers nor
// reads: it has to be started again, also when a call fills the pipe to it.
func TestHungServer(t *testing.T) {
	noLeak(t)
	cfg := overStdio(t, "serve")
	cfg.Timeout = 200 * time.Millisecond // of writes
	s := connect(t, cfg)
	s.cfg.Timeout = 30 * time.Second
	first, err := called(t, s, "pid", "")
	if err != nil {
		t.Fatal(err)
	}
	pid, echo := atoi(first), toolOf(t, s, "echo")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.cfg.Timeout = 200 * time.Millisecond
	if _, err := echo.Run(t.Context(), json.RawMessage(`{"text":"`+strings.Repeat("x", 1<<20)+`"}`)); !errors.Is(err, ErrUncertain) {
		t.Errorf("got %v", err)
	}
	s.cfg.Timeout = 30 * time.Second
	want(t, s, "echo", "new", "new")
}

func TestCloseDuringCall(t *testing.T) {
	noLeak(t)
	s := connect(t, overStdio(t, "serve"))
	waiting := toolOf(t, s, "wait")
	errs := make(chan error)
	go func() {
		_, err := waiting.Run(t.Context(), nil)
		errs <- err
	}()
	eventually(t, "in flight", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.users > 0 })
	time.Sleep(20 * time.Millisecond)
	s.Close()
	if err := <-errs; !errors.Is(err, ErrClosed) || !errors.Is(err, ErrUncertain) {
		t.Errorf("got %v", err)
	}
	s.Close()
}

func TestCloseDuringStart(t *testing.T) {
	need.Time(t)
	noLeak(t)
	cfg := overStdio(t, "stubborn")
	cfg, err := cfg.complete()
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(cfg)
	errs := make(chan error)
	go func() {
		_, err := s.Tools(context.Background())
		errs <- err
	}()
	eventually(t, "starting", func() bool { return len(s.turn) == 1 })
	time.Sleep(20 * time.Millisecond)
	s.Close()
	if err := <-errs; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestFamily has the server start a child, which must not outlive it.
func TestFamily(t *testing.T) {
	for _, how := range []string{"closed", "killed"} {
		cfg := overStdio(t, "family")
		s := connect(t, cfg)
		data, err := os.ReadFile(filepath.Join(string(cfg.Env["DIR"]), "child"))
		if err != nil {
			t.Fatal(err)
		}
		if how == "killed" {
			text, err := called(t, s, "pid", "")
			if err != nil {
				t.Fatal(err)
			}
			syscall.Kill(atoi(text), syscall.SIGKILL)
		} else {
			s.Close()
		}
		eventually(t, "the child has ended", func() bool {
			state, err := os.ReadFile("/proc/" + string(data) + "/stat")
			return err != nil && syscall.Kill(atoi(string(data)), 0) != nil || strings.Contains(string(state), ") Z ")
		})
	}
}

func TestIdle(t *testing.T) {
	noLeak(t)
	cfg := overStdio(t, "serve")
	cfg.Idle = 20 * time.Millisecond
	tools := Tools(cfg, "pid", "wait")
	pid := tools[0].Tool
	ask := func() string {
		res, err := pid.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.Text
	}
	first := ask()
	eventually(t, "let go", func() bool { return syscall.Kill(atoi(first), 0) != nil })
	second := ask()
	if second == first {
		t.Error("the server was not started again")
	}
	eventually(t, "let go", func() bool { return syscall.Kill(atoi(second), 0) != nil })
}

func TestEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "for the provider only")
	cfg := overStdio(t, "serve")
	cfg.Env["TOKEN"], cfg.Env["MODE"] = "hunter22", "verbose"
	text, err := called(t, connect(t, cfg), "env", "")
	if err != nil || strings.Contains(text, "OPENAI") || !strings.Contains(text, "MODE=verbose") || !strings.Contains(text, "TOKEN=[redacted]") || !strings.Contains(text, "PATH=") {
		t.Errorf("got %q, %v", text, err)
	}
}
