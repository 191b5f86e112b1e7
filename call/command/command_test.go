//go:build unix

package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/command"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/boxtest"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/sandbox"
	"github.com/stonelayer/stone/stonetest"
)

func Example() {
	sh := command.New(call.Metadata{ID: "sh/answer"}, command.Config{
		Command: []string{"/bin/sh", "-c", `echo '{"text": "forty-two"}'`},
	})
	reply, err := sh.Invoke(context.Background(), &call.Request{Intent: "text/respond", Input: call.JSON(`{"prompt":"?"}`)})
	fmt.Println(string(reply.Out), err)

	long := command.Check(command.Config{Command: []string{"/bin/sh", "-c", `echo "too short" >&2; exit 1`}})
	fmt.Println(long(context.Background(), call.Subject{Out: reply.Out}))
	// Output:
	// {"text":"forty-two"} <nil>
	// runtime/invoke-failed: the program failed: exit status 1: too short
}

func shell(script string) command.Config {
	return command.Config{Command: []string{"/bin/sh", "-c", script}}
}

func TestCapability(t *testing.T) {
	stonetest.TestCapability(t, stonetest.Capability{
		Make: func(*testing.T) call.Capability {
			return command.New(call.Metadata{}, shell(`case "$(cat)" in
				*hang*) sleep 100;;
				*pieces*) echo '{"type":"delta","text":"nine"}'; echo '{"type":"retracted","reason":"no"}'; printf '\n{:type :delta :text "o"}\n{"type":"delta","text":"ne"}'; exit;;
				esac; echo '{"text":"x"}'`))
		},
		OK:     &call.Request{Intent: "x/y", Input: call.JSON(`{"text":"go"}`)},
		Slow:   &call.Request{Intent: "x/y", Input: call.JSON(`{"text":"hang"}`)},
		Stream: &call.Request{Intent: "x/y", Input: call.JSON(`{"text":"pieces"}`)},
	})
}

// A piece is passed on before the program ends: it ends when the piece was heard.
func TestPiecesComeAtOnce(t *testing.T) {
	heard := filepath.Join(t.TempDir(), "heard")
	app := &call.Applicator{Registry: call.NewRegistry(command.New(
		call.Metadata{ID: "slow", CanProduce: []string{call.Stream}},
		shell(`echo '{"type":"delta","text":"one"}'; until test -e `+heard+`; do sleep 0.01; done; echo '{"type":"delta","text":" two"}'`),
	))}
	var said []string
	resp, _ := app.Act(t.Context(), call.Trace{ID: "r"}, call.Spec{Intent: "x/y"}, stone.Config{
		Grant: []string{"process"},
		Watch: event.Func(event.LevelDelta, func(e event.Event) {
			if d, ok := e.Data.(event.Delta); ok && d.Text != "" {
				said = append(said, d.Source+":"+d.Text)
				if err := os.WriteFile(heard, nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		}),
	})
	if resp.Err != nil || string(resp.Reply.Out) != `{"text":"one two"}` || fmt.Sprint(said) != "[slow:one slow: two]" {
		t.Errorf("%v %v, heard %q", resp.Reply, resp.Err, said)
	}
}

func TestPrograms(t *testing.T) {
	for _, test := range []struct{ script, want string }{
		{`echo '{"text":"x"}'`, `{"text":"x"}`},
		{`echo '{:text "x" :kind :rye}'`, `{"kind":"rye","text":"x"}`},
		{`echo '{"proto":1,"trace":{"id":"r"},"result":{"type":"value","out":{"a":1},"usage":{"input-tokens":7}}}'`, `{"a":1}`},
		{`echo '{"result":{"type":"value","out":[1]}}'`, `[1]`},
		{`echo '{"error":{"type":"oven/cold","message":"no gas","retryable?":true}}'`, `oven/cold: no gas`},
		{`cat >/dev/null; echo 1`, `1`},
		{`exit 3`, `runtime/invoke-failed: the program failed: exit status 3`},
		{`echo one >&2; echo two >&2; echo '{"text":"x"}'; exit 1`, `runtime/invoke-failed: the program failed: exit status 1: one two`},
		{`kill -9 $$`, `runtime/invoke-failed: the program failed: signal: killed`},
		{`true`, `schema/invalid: `},
		{`echo garbage garbage`, `schema/invalid: `},
		{`head -c 1000 /dev/urandom`, `schema/invalid: `},
		{`yes '[1'`, `schema/invalid: the program wrote more than 8388608 bytes`},
		{`head -c 100000 /dev/zero >&2; exit 1`, `runtime/invoke-failed: `},
		{`(trap '' TERM; sleep 100) & echo '{"text":"parent is done"}'`, `{"text":"parent is done"}`},
		{`exec <&-; echo 1`, `1`},
	} {
		// A program that is never stopped, or whose children are waited for, exceeds the deadline.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		reply, err := command.New(call.Metadata{}, shell(test.script)).Invoke(ctx, &call.Request{
			Intent: "x/y", Input: call.JSON(`{"text":"` + strings.Repeat("x", 200_000) + `"}`)})
		cancel()
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = string(reply.Out)
		}
		if !strings.HasPrefix(got, test.want) || strings.Contains(got, "\n") || len(got) > 4000 {
			t.Errorf("%s: %.300s, want %s", test.script, got, test.want)
		}
	}
}

func TestRequestIsTheEnvelope(t *testing.T) {
	reply, err := command.New(call.Metadata{}, shell("cat")).Invoke(t.Context(), &call.Request{
		Trace: call.Trace{ID: "r-1", Turn: 2}, Intent: "x/y", Cap: "me", Input: call.JSON(`{"a":1}`), Effects: []string{"process"}})
	if err == nil || reply != nil { // it is no response
		t.Fatal(reply, err)
	}
	reply, err = command.New(call.Metadata{}, shell(`printf '{"seen":'; cat; printf '}'`)).Invoke(t.Context(), &call.Request{
		Trace: call.Trace{ID: "r-1", Turn: 2}, Intent: "x/y", Cap: "me", Input: call.JSON(`{"a":1}`), Effects: []string{"process"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"proto":1`, `"id":"r-1"`, `"intent":"x/y"`, `"input":{"a":1}`, `"allowed":["process"]`} {
		if !strings.Contains(string(reply.Out), part) {
			t.Errorf("%s lacks %s", reply.Out, part)
		}
	}
}

// What a program starts ends with it, also when it is stopped.
func TestChildrenEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		var text []byte
		for !bytes.HasSuffix(text, []byte("\n")) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
			text, _ = os.ReadFile(file) // fails until the program has written it
		}
		cancel()
	}()
	_, err := command.New(call.Metadata{}, shell(`sh -c 'trap "" TERM; echo $$ > `+file+`; while true; do sleep 1; done' & wait`)).Invoke(ctx, &call.Request{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the error of the context", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(20 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if syscall.Kill(pid, 0) != nil || err == nil && strings.Contains(string(stat), ") Z ") {
			return // gone, or dead and not yet reaped
		}
	}
	t.Errorf("process %d is still there", pid)
}

func TestEnvironment(t *testing.T) {
	t.Setenv("STONE_TEST_GIVEN", "given")
	t.Setenv("STONE_TEST_SECRET", "secret")
	c := shell(`printf '"%s-%s"' "$STONE_TEST_GIVEN" "$STONE_TEST_SECRET"`)
	c.Env = []string{"STONE_TEST_GIVEN", "STONE_TEST_MISSING"}
	reply, err := command.New(call.Metadata{}, c).Invoke(t.Context(), &call.Request{})
	if err != nil || string(reply.Out) != `"given-"` {
		t.Errorf("%v, %v", reply, err)
	}
}

func TestCheckHolds(t *testing.T) {
	c := shell(`grep -q '"out":{"text":"right"}' || { echo "wrong text" >&2; exit 1; }`)
	c.Env = []string{"PATH"}
	check := command.Check(c)
	req := &call.Request{Intent: "x/y", Input: call.JSON(`{}`)}
	if err := check(t.Context(), call.Subject{Request: req, Out: call.JSON(`{"text":"right"}`)}); err != nil {
		t.Error(err)
	}
	if err := check(t.Context(), call.Subject{Request: req, Out: call.JSON(`{"text":"other"}`)}); err == nil || !strings.Contains(err.Error(), "wrong text") {
		t.Error(err)
	}
	if err := command.Check(command.Config{})(t.Context(), call.Subject{}); err == nil {
		t.Error("a check without a program holds")
	}
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		config command.Config
		want   string
	}{
		{command.Config{}, "no program"},
		{command.Config{Command: []string{"sh"}}, `the program "sh" is not an absolute path`},
		{command.Config{Command: []string{"/bin/sh"}, Scope: call.Scope{Process: call.Process{}}}, "not in scope: the list is empty"},
		{command.Config{Command: []string{"/bin/sh"}, Scope: call.Scope{Process: call.Process{"/bin/true"}}}, "not in scope: /bin/true"},
		{command.Config{Command: []string{"/bin/sh"}, Scope: call.Scope{Net: call.Net{"https://example.com"}}}, "single servers"},
		{command.Config{Command: []string{"/bin/sh"}, Env: []string{"A=b"}}, `Env has "A=b"`},
		{command.Config{Command: []string{"/nonexistent"}}, "cannot be started"},
		{command.Config{Command: []string{"/bin/sh"}, Dir: "/nonexistent/dir"}, "cannot be prepared"},
		{command.Config{Command: []string{"/bin/sh"}, Dir: "/", Scope: call.Scope{FS: call.FS{"/tmp"}}}, "outside the directories in scope"},
	} {
		_, err := command.New(call.Metadata{}, test.config).Invoke(t.Context(), &call.Request{})
		if err == nil || !strings.HasPrefix(err.Error(), "runtime/unavailable: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %s", test.config, err, test.want)
		}
	}
}

func TestScope(t *testing.T) {
	method := boxtest.NeedAny(t)
	base := t.TempDir()
	inside, outside := filepath.Join(base, "in"), filepath.Join(base, "out")
	for _, dir := range []string{inside, outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := shell(`echo x > here; echo x > ` + outside + `/there; ls ` + outside + `/there >/dev/null 2>&1 && echo '"escaped"' || echo '"held"'`)
	c.Scope.FS, c.Scope.Net, c.Env = call.FS{inside}, call.Net{}, []string{"PATH"}
	reply, err := command.New(call.Metadata{}, c).Invoke(t.Context(), &call.Request{})
	if err != nil || string(reply.Out) != `"held"` || reply.Usage.Sandbox != string(method) {
		t.Errorf("%v, %v", reply, err)
	}
	if _, err := os.Stat(filepath.Join(inside, "here")); err != nil {
		t.Errorf("what is in scope cannot be changed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(outside, "there")); err == nil {
		t.Error("what is outside the scope was changed")
	}
	c.Scope.FS = call.FS{}
	if reply, err := command.New(call.Metadata{}, c).Invoke(t.Context(), &call.Request{}); err != nil || string(reply.Out) != `"held"` {
		t.Errorf("no directories: %v, %v", reply, err)
	}
	c = shell(`echo x > ` + outside + `/there && echo '"written"'`)
	c.Scope.Net, c.Env = call.Net{}, []string{"PATH"}
	if reply, err := command.New(call.Metadata{}, c).Invoke(t.Context(), &call.Request{}); err != nil || string(reply.Out) != `"written"` {
		t.Errorf("no network: %v, %v", reply, err)
	}
}

// A program that is limited to directories reaches a server on the loopback of this machine only if its
// configuration says so.
func TestLoopback(t *testing.T) {
	method := boxtest.NeedAny(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var heard atomic.Int64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		heard.Add(1)
		_, _ = io.WriteString(w, `"reached"`)
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	curl := need.Program(t, "curl")
	_, err = exec.LookPath("slirp4netns")
	apart := method == sandbox.Bubblewrap && err == nil
	c := shell(curl + ` -s -m 5 http://` + l.Addr().String() + ` || echo '"held"'`)
	c.Scope.FS = call.FS{}
	reply, err := command.New(call.Metadata{}, c).Invoke(t.Context(), &call.Request{})
	if apart && (err != nil || string(reply.Out) != `"held"`) || !apart && (err == nil || !strings.Contains(err.Error(), "loopback")) || heard.Load() != 0 {
		t.Errorf("by default: %v, %v, and the server heard %d requests", reply, err, heard.Load())
	}
	c.Loopback = true
	if reply, err := command.New(call.Metadata{}, c).Invoke(t.Context(), &call.Request{}); err != nil || string(reply.Out) != `"reached"` {
		t.Errorf("with loopback: %v, %v", reply, err)
	}
}
