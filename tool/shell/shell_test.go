package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/internal/test/boxtest"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/sandbox"
)

// sessions runs a test with a session for each method that is present.
func sessions(t *testing.T, c Config, test func(*testing.T, *Session)) {
	for _, m := range []sandbox.Method{sandbox.Bubblewrap, sandbox.Landlock, sandbox.Unconfined} {
		t.Run(string(m), func(t *testing.T) {
			boxtest.Need(t, m)
			t.Parallel()
			c := c
			if c.Dir == "" {
				c.Dir = t.TempDir()
			}
			s := New(c)
			s.find = func() (sandbox.Method, error) { return m, nil }
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, s)
		})
	}
}

func call(t *testing.T, m agent.Middleware, input any) (agent.Result, error) {
	t.Helper()
	if m.Tool.Err != nil {
		t.Fatal(m.Tool.Err)
	}
	data, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return m.Tool.Run(t.Context(), data)
}

func TestRun(t *testing.T) {
	sessions(t, Config{}, func(t *testing.T, s *Session) {
		for _, tt := range []struct{ command, want string }{
			{`echo out; echo err >&2`, "exit code: 0\nstdout:\nout\nstderr:\nerr\n"},
			{`printf out`, "exit code: 0\nstdout:\nout\n"},
			{`true`, "exit code: 0\n"},
			{`exit 3`, "exit code: 3\n"},
			{`cat`, "exit code: 0\n"}, // standard input is empty
			{`printf 'a\377b'`, "exit code: 0\nstdout:\na\uFFFDb\n"},
			{`pwd`, "exit code: 0\nstdout:\n" + s.config.Dir + "\n"},
			{`echo kept > f`, "exit code: 0\n"},
			{`cat f`, "exit code: 0\nstdout:\nkept\n"},
			{`f=$(mktemp) && echo x > "$f" && cat "$f" && touch ~/y && ls "$HOME" | grep -c .`, "exit code: 0\nstdout:\nx\n2\n"},
		} {
			got, err := call(t, Run(s), runInput{Command: tt.command})
			if err != nil || got.Text != tt.want || got.Recommend != nil {
				t.Errorf("%s: got %q, %v; want %q", tt.command, got.Text, err, tt.want)
			}
		}
		for _, tt := range []struct {
			in   runInput
			want string
		}{
			{runInput{Command: " "}, "command is empty"},
			{runInput{Command: "true", Timeout: -1}, "from 1 to 60"},
			{runInput{Command: "true", Timeout: 61}, "from 1 to 60"},
		} {
			if _, err := call(t, Run(s), tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v: got %v", tt.in, err)
			}
		}
	})
}

func TestRunMeta(t *testing.T) {
	sessions(t, Config{}, func(t *testing.T, s *Session) {
		got, err := call(t, Run(s), runInput{Command: "echo hello; exit 2"})
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]any{
			"exit_code": 2, "stdout_bytes": int64(6), "stderr_bytes": int64(0), "timed_out": false, "command": "echo hello; exit 2",
		} {
			if got.Meta[key] != want {
				t.Errorf("%s: got %v, want %v", key, got.Meta[key], want)
			}
		}
		if _, err := json.Marshal(got.Meta); err != nil {
			t.Error(err)
		}
	})
}

// timedOut runs a command until its timeout kills it. It returns the result and the timeout in seconds.
// On a busy machine the command may not get far enough in time, so timedOut doubles the timeout, up to a
// minute.
func timedOut(t *testing.T, s *Session, command string, enough func(agent.Result) bool) (agent.Result, int) {
	t.Helper()
	for seconds := 1; ; seconds = min(2*seconds, 60) {
		got, err := call(t, Run(s), runInput{Command: command, Timeout: seconds})
		if err != nil || got.Meta["timed_out"] != true {
			t.Fatalf("after %d s: got %.200q, %v, %v", seconds, got.Text, got.Meta, err)
		}
		if enough(got) {
			return got, seconds
		}
		if seconds == 60 {
			t.Fatalf("after a minute: got %.200q, %v", got.Text, got.Meta)
		}
	}
}

// A command that never stops writing needs little memory and is killed after its timeout.
func TestEndlessOutput(t *testing.T) {
	sessions(t, Config{MaxOutput: 1000}, func(t *testing.T, s *Session) {
		got, seconds := timedOut(t, s, `trap "" TERM; echo first; yes; echo never`, func(r agent.Result) bool { return r.Meta["stdout_bytes"].(int64) >= 1<<20 })
		if !strings.HasPrefix(got.Text, fmt.Sprintf("timed out after %ds and was killed\nstdout:\nfirst\ny\ny\n", seconds)) ||
			!strings.Contains(got.Text, "bytes are left out here]\n") || !strings.Contains(got.Text, "y\ny\n") || len(got.Text) > 1200 {
			t.Errorf("got %d bytes: %.200q", len(got.Text), got.Text)
		}
	})
}

func TestTimeout(t *testing.T) {
	sessions(t, Config{}, func(t *testing.T, s *Session) {
		got, seconds := timedOut(t, s, `trap "" TERM; echo a; while :; do sleep 0.1; done`, func(r agent.Result) bool { return strings.Contains(r.Text, "stdout") })
		if want := fmt.Sprintf("timed out after %ds and was killed\nstdout:\na\n", seconds); got.Text != want {
			t.Errorf("got %q, want %q", got.Text, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := Run(s).Tool.Run(ctx, json.RawMessage(`{"command":"sleep 60"}`)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("when the run ends: got %v", err)
		}
	})
}

func TestBackground(t *testing.T) {
	sessions(t, Config{}, func(t *testing.T, s *Session) {
		start := func(in runInput) {
			if _, err := call(t, Start(s), in); err != nil {
				t.Fatal(err)
			}
		}
		got, err := call(t, Start(s), runInput{Command: `echo one; while ! test -e go; do sleep 0.02; done; echo two`})
		if err != nil || got.Text != "started cmd-1" {
			t.Fatalf("got %q, %v", got.Text, err)
		}
		start(runInput{Command: `exit 4`})
		start(runInput{Command: `sleep 60`, Timeout: 1})
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			got, err := call(t, Check(s), checkInput{ID: "cmd-1"})
			if err == nil && got.Text == "running\nstdout:\none\n" {
				break
			}
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("got %q, %v", got.Text, err)
			}
		}
		if _, err := call(t, Run(s), runInput{Command: `touch go`}); err != nil {
			t.Fatal(err)
		}
		got, err = call(t, Wait(s), waitInput{IDs: []string{"cmd-3", "cmd-1", "cmd-2"}})
		want := "cmd-3: sleep 60\ntimed out after 1s and was killed\n\n" +
			"cmd-1: echo one; while ! test -e go; do sleep 0.02; done; echo two\nexit code: 0\nstdout:\none\ntwo\n\n" +
			"cmd-2: exit 4\nexit code: 4\n\n"
		if err != nil || got.Text != want {
			t.Errorf("got %q, %v; want %q", got.Text, err, want)
		}
		got, err = call(t, Check(s), checkInput{ID: "cmd-2"})
		if err != nil || got.Text != "exit code: 4\n" || got.Meta["exit_code"] != 4 {
			t.Errorf("got %q, %v, %v", got.Text, got.Meta, err)
		}
		for _, ids := range [][]string{{"cmd-9"}, {}, nil} {
			if got, err := call(t, Wait(s), waitInput{IDs: ids}); err == nil {
				t.Errorf("%v: got %q", ids, got.Text)
			}
		}
		if _, err := call(t, Check(s), checkInput{ID: "cmd-9"}); err == nil || !strings.Contains(err.Error(), "start it again") {
			t.Errorf("got %v", err)
		}
	})
}

func TestWaitEndsWithTheRun(t *testing.T) {
	sessions(t, Config{}, func(t *testing.T, s *Session) {
		if _, err := call(t, Start(s), runInput{Command: `sleep 60`}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := Wait(s).Tool.Run(ctx, json.RawMessage(`{"ids":["cmd-1"]}`)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestBackgroundIsBounded(t *testing.T) {
	need.Time(t)
	s := New(Config{Dir: t.TempDir(), Unconfined: true})
	defer s.Close()
	for i := range maxRunning + 1 {
		_, err := call(t, Start(s), runInput{Command: `while ! test -e go; do sleep 0.05; done`})
		if full := i == maxRunning; (err != nil) != full || full && !strings.Contains(err.Error(), "wait_commands") {
			t.Fatalf("command %d: %v", i+1, err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.config.Dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.commands {
		<-c.done
	}
	for range maxKept + maxRunning {
		c, err := s.background(t.Context(), "true", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		<-c.done
	}
	if n := len(s.commands); n > maxKept+maxRunning {
		t.Errorf("%d commands are kept", n)
	}
	if _, err := s.lookup("cmd-1"); err == nil {
		t.Error("the first command is still known")
	}
}

// What commands leave behind ends with the session, and so do its files.
func TestClose(t *testing.T) {
	sessions(t, Config{}, func(t *testing.T, s *Session) {
		if _, err := call(t, Start(s), runInput{Command: `trap "" TERM; while :; do echo x >> beat; sleep 0.02; done`}); err != nil {
			t.Fatal(err)
		}
		running := make(chan string)
		go func() {
			got, err := Run(s).Tool.Run(context.Background(), json.RawMessage(`{"command":"sleep 60"}`))
			running <- fmt.Sprint(got.Text, err)
		}()
		beat := filepath.Join(s.config.Dir, "beat")
		for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(beat); err == nil {
				break
			} else if time.Since(start) > 10*time.Second {
				t.Fatal("the command does not start")
			}
		}
		scratch := s.scratch
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		if got := <-running; got != "was stopped before it ended\n<nil>" && !strings.Contains(got, errClosed.Error()) {
			t.Errorf("the other command: %q", got)
		}
		before, err := os.ReadFile(beat)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
		if after, err := os.ReadFile(beat); err != nil || len(after) != len(before) {
			t.Errorf("the command is alive: %v", err)
		}
		if _, err := os.Stat(scratch); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("temporary files are left: %v", err)
		}
		got, err := call(t, Run(s), runInput{Command: "true"})
		if err != nil || got.Text != errClosed.Error() || got.Recommend == nil || got.Recommend.Action != agent.Halt {
			t.Errorf("after Close: %+v, %v", got, err)
		}
	})
}

func TestRefusedWithoutSandbox(t *testing.T) {
	s := New(Config{Dir: t.TempDir()})
	defer s.Close()
	s.find = func() (sandbox.Method, error) { return "", fmt.Errorf("%w (reasons)", sandbox.ErrNone) }
	for _, m := range []agent.Middleware{Run(s), Start(s)} {
		got, err := call(t, m, runInput{Command: "echo x"})
		if err != nil || got.Recommend == nil || got.Recommend.Action != agent.Halt || !strings.HasPrefix(got.Recommend.Reason, noCommands) ||
			!strings.Contains(got.Text, "no sandbox for commands works here (reasons); install bubblewrap, or set Unconfined") {
			t.Errorf("%s: got %+v, %v", m.Name, got, err)
		}
	}
	missing := New(Config{Dir: "/no/such/directory", Unconfined: true})
	if got, err := call(t, Run(missing), runInput{Command: "true"}); err != nil || got.Recommend == nil || !strings.Contains(got.Text, "/no/such/directory") {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A command cannot widen what the next one may do by putting a link in the place of
// a path that is granted.
func TestLinkInPlaceOfGrant(t *testing.T) {
	for _, m := range []sandbox.Method{sandbox.Bubblewrap, sandbox.Landlock} {
		if err := m.Check(); err != nil {
			t.Logf("%s does not work here: %v", m, err)
			continue
		}
		top := t.TempDir()
		outside, work := filepath.Join(top, "outside"), filepath.Join(top, "work")
		err := errors.Join(os.MkdirAll(filepath.Join(work, "cache"), 0o777), os.MkdirAll(filepath.Join(work, "sub"), 0o777),
			os.Mkdir(outside, 0o777), os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o666))
		if err != nil {
			t.Fatal(err)
		}
		s := New(Config{
			Dir: filepath.Join(work, "sub"), Writable: []string{filepath.Join(work, "cache"), work},
			ReadOnly: []string{filepath.Join(work, "later"), filepath.Join(work, "cache")},
		})
		s.find = func() (sandbox.Method, error) { return m, nil }
		for i, command := range []string{
			`cd .. && rm -r cache sub && for f in cache sub later; do ln -s "` + outside + `" $f; done; ls`,
			`cat "` + outside + `/secret" "` + work + `/cache/secret" "` + work + `/later/secret" ./secret`,
			`echo x > "` + work + `/cache/secret"; echo x > secret`,
		} {
			got, err := call(t, Run(s), runInput{Command: command})
			if err != nil || (i == 0) != strings.Contains(got.Text, "stdout:\n") {
				t.Errorf("%s: %s: got %q, %v", m, command, got.Text, err)
			}
		}
		if data, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(data) != "secret" {
			t.Errorf("%s: the file outside is %q, %v", m, data, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("STONE_KEY", "secret")
	t.Setenv("STONE_PASSED", "passed")
	t.Setenv("LANG", "C.UTF-8")
	s := New(Config{Dir: t.TempDir(), Unconfined: true, Env: []string{"STONE_PASSED", "SET=a=b", "STONE_MISSING"}})
	defer s.Close()
	got, err := call(t, Run(s), runInput{Command: `env`})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{
		"STONE_KEY": false, "STONE_MISSING": false, "STONE_PASSED=passed\n": true, "SET=a=b\n": true, "LANG=C.UTF-8\n": true, "PATH=": true, "HOME=" + s.scratch: true,
	} {
		if strings.Contains(got.Text, line) != want {
			t.Errorf("%s: want %v in %s", line, want, got.Text)
		}
	}
}

func TestToolsDeclareThemselves(t *testing.T) {
	for effects, c := range map[string]Config{"process": {}, "process net": {Network: true}, "process net ": {Unconfined: true}} {
		s := New(c)
		for name, m := range map[string]agent.Middleware{
			"run_command": Run(s), "start_command": Start(s), "check_command": Check(s), "wait_commands": Wait(s),
		} {
			if m.Name != name || m.Tool.Err != nil || strings.Join(m.Tool.Effects, " ") != strings.TrimSpace(effects) {
				t.Errorf("%s: %+v", name, m.Tool)
			}
		}
	}
}
