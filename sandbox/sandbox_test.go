//go:build unix

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/notice"
	"github.com/stonelayer/stone/internal/test/boxtest"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/sandbox"
)

// methods runs a test under each method that is present.
func methods(t *testing.T, test func(*testing.T, sandbox.Method), ms ...sandbox.Method) {
	for _, m := range ms {
		t.Run(string(m), func(t *testing.T) {
			boxtest.Need(t, m)
			test(t, m)
		})
	}
}

// Bubblewrap, where it is installed, is the method that is found, and it confines: the
// first process of the command's namespace is bwrap.
func TestStrongest(t *testing.T) {
	boxtest.Need(t, sandbox.Bubblewrap)
	if m, err := sandbox.Find(); m != sandbox.Bubblewrap {
		t.Fatalf("found %q, %v", m, err)
	}
	out, err := sandbox.Command(t.Context(), sandbox.Policy{}, "/bin/cat", "/proc/1/comm").Output(100)
	if err != nil || out != "bwrap\n" {
		t.Errorf("the first process is %q, %v", out, err)
	}
}

func init() {
	roles["weaker"] = func() error {
		ctx := notice.With(context.Background(), func(line string) { fmt.Println(line) })
		for range 2 {
			if err := sandbox.Command(ctx, sandbox.Policy{}, "/bin/sh", "-c", ":").Run(); err != nil {
				return err
			}
		}
		return nil
	}
}

// A user without Bubblewrap is told so, once.
func TestWeakerIsTold(t *testing.T) {
	boxtest.Need(t, sandbox.Landlock)
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = []string{"SANDBOX_ROLE=weaker", "PATH=/nowhere"}
	out, err := c.CombinedOutput()
	const want = "commands are confined by landlock only (bubblewrap: the program bwrap is not installed"
	if text := string(out); err != nil || !strings.HasPrefix(text, want) || strings.Count(text, "\n") != 1 {
		t.Errorf("%v: %s", err, text)
	}
}

// world is a directory that a command may use and one that it must not use.
type world struct{ work, outside string }

func newWorld(t *testing.T) world {
	top := t.TempDir()
	w := world{filepath.Join(top, "work"), filepath.Join(top, "outside")}
	err := errors.Join(os.Mkdir(w.work, 0o777), os.Mkdir(w.outside, 0o777),
		os.WriteFile(filepath.Join(w.outside, "secret"), []byte("secret"), 0o666))
	if err != nil {
		t.Error(err)
	}
	return w
}

// run runs a script in the world's work directory and returns its output.
func (w world) run(ctx context.Context, m sandbox.Method, p sandbox.Policy, script string) (string, error) {
	p.Writable, p.Method = append(p.Writable, w.work), m
	cmd := sandbox.Command(ctx, p, "/bin/sh", "-c", script)
	cmd.Dir = w.work
	cmd.Env = []string{"OUT=" + w.outside, fmt.Sprint("PROGRAM=", os.Getpid())}
	return cmd.Output(1 << 20)
}

func TestReach(t *testing.T) {
	t.Setenv("STONE_SECRET", "secret")
	methods(t, func(t *testing.T, m sandbox.Method) {
		for _, tt := range []struct {
			script string
			ok     bool
		}{
			{`echo hello > new && mkdir -p a/b && mv new a/b/ && cat a/b/new && rm -r a`, true},
			{`echo x > /dev/stdout && echo x > /dev/null && head -c 1 /dev/urandom | wc -c`, true},
			{`ln -s /usr/bin/env here && ./here true`, true},
			{`cat /proc/self/status | grep '^CapEff:.*0000000000000000$'`, true},
			{`cat /etc/passwd`, true},
			{`sort /etc/passwd | uniq | (sleep 0; cat) | wc -l`, true},

			{`cat "$OUT/secret"`, false},
			{`ls "$OUT"`, false},
			{`ln -s "$OUT/secret" link; cat link`, false},
			{`ln "$OUT/secret" hard && cat hard`, false},
			{`mv "$OUT/secret" moved && cat moved`, false},
			{`echo x >> "$OUT/secret"`, false},
			{`: > "$OUT/secret"`, false},
			{`truncate -s 0 "$OUT/secret" && test -e "$OUT/secret"`, false},
			{`rm -f "$OUT/secret" && test -d "$OUT"`, false},
			{`ls "$OUT/.." | grep outside`, false},
			{`cat /etc/shadow`, false},
			{`ls /root`, false},
			{`echo x > /usr/bin/stone-was-here`, false},
			{`grep -z STONE_SECRET "/proc/$PROGRAM/environ"`, false},
			{`: >> /proc/sys/kernel/core_pattern`, false},
			{`mknod disk b 8 0 && head -c 1 disk`, false},
			{`mount -t tmpfs none "$PWD"`, false},
			{`exit 7`, false},
		} {
			w := newWorld(t)
			out, err := w.run(t.Context(), m, sandbox.Policy{}, tt.script)
			if (err == nil) != tt.ok {
				t.Errorf("%s\n%s: error %v, want success %v", tt.script, out, err, tt.ok)
			}
			if data, err := os.ReadFile(filepath.Join(w.outside, "secret")); err != nil || string(data) != "secret" {
				t.Errorf("%s: the file outside is %q, error %v", tt.script, data, err)
			}
		}
	}, sandbox.Bubblewrap, sandbox.Landlock)
}

func TestReadOnlyAndMissingPaths(t *testing.T) {
	methods(t, func(t *testing.T, m sandbox.Method) {
		w := newWorld(t)
		p := sandbox.Policy{ReadOnly: []string{w.outside, "/no/such/path"}}
		if out, err := w.run(t.Context(), m, p, `cat "$OUT/secret"`); err != nil || out != "secret" {
			t.Errorf("reading: %q, %v", out, err)
		}
		if out, err := w.run(t.Context(), m, p, `echo x > "$OUT/secret"`); err == nil {
			t.Errorf("writing: %q", out)
		}
		p = sandbox.Policy{Writable: []string{"/no/such/path"}}
		if out, err := w.run(t.Context(), m, p, `true`); err == nil {
			t.Errorf("a writable path that does not exist: %q", out)
		}
	}, sandbox.Bubblewrap, sandbox.Landlock)
}

func TestNetwork(t *testing.T) {
	need.Program(t, "/bin/bash") // which can open connections
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello\n")
			c.Close()
		}
	}()
	port := listener.Addr().(*net.TCPAddr).Port
	script := fmt.Sprintf(`bash -c 'cat < /dev/tcp/127.0.0.1/%d'`, port)
	methods(t, func(t *testing.T, m sandbox.Method) {
		for _, loopback := range []bool{false, true} {
			out, err := newWorld(t).run(t.Context(), m, sandbox.Policy{Network: loopback, Loopback: loopback}, script)
			if (out == "hello\n") != loopback || (err == nil) != loopback {
				t.Errorf("network with loopback %v: got %q, %v", loopback, out, err)
			}
		}
	}, sandbox.Bubblewrap, sandbox.Landlock)
}

// A network has no servers on the loopback of the machine, but the others, with their names.
func TestNetworkWithoutLoopback(t *testing.T) {
	need.Program(t, "slirp4netns")
	heard := make(chan string, 100)
	serve := func(l net.Listener) {
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				heard <- l.Addr().String()
				_, _ = io.WriteString(c, "hello\n")
				c.Close()
			}
		}()
	}
	var ports []string
	for _, address := range []string{"127.0.0.1:0", "127.8.9.10:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		serve(l)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	// What is not on loopback here is an address of the machine itself, as another machine would have.
	own := ownAddress(t)
	l, err := net.Listen("tcp", net.JoinHostPort(own, "0"))
	if err != nil {
		t.Fatal(err)
	}
	serve(l)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	methods(t, func(t *testing.T, m sandbox.Method) {
		for i, at := range []string{"127.0.0.1", "127.8.9.10", "::1", "10.0.2.2", "0.0.0.0", "localhost"} {
			out, err := newWorld(t).run(t.Context(), m, sandbox.Policy{Network: true}, fmt.Sprintf(`bash -c 'cat < /dev/tcp/%s/%s'`, at, ports[i%len(ports)]))
			if err == nil || strings.Contains(out, "hello") {
				t.Errorf("%s: a server on loopback said %q, %v", at, out, err)
			}
		}
		out, err := newWorld(t).run(t.Context(), m, sandbox.Policy{Network: true}, fmt.Sprintf(`bash -c 'cat < /dev/tcp/%s/%s'; cat /etc/resolv.conf`, own, port))
		if err != nil || out != "hello\nnameserver 10.0.2.3\n" {
			t.Errorf("another address said %q, %v", out, err)
		}
		if len(heard) != 1 || <-heard != l.Addr().String() {
			t.Error("a server on loopback heard something")
		}
	}, sandbox.Bubblewrap)
	if _, err := newWorld(t).run(t.Context(), sandbox.Landlock, sandbox.Policy{Network: true}, "true"); err == nil || !strings.Contains(err.Error(), "give the command the loopback too") {
		t.Errorf("under Landlock: %v", err)
	}
}

// ownAddress returns an IPv4 address of this machine that is not on loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	need.Absent(t, "this machine has no address but loopback")
	return ""
}

// still fails if the file beats, which a script in the background writes.
func still(t *testing.T, name, path string) {
	t.Helper()
	read := func() string {
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		return string(data)
	}
	before := read()
	time.Sleep(300 * time.Millisecond)
	if after := read(); after != before {
		t.Errorf("%s: something is alive: it wrote %d bytes and more", name, len(after))
	}
}

const beating = `while :; do echo x >> beat; sleep 0.02; done`

// No descendant of a command remains when it has ended, and none delays Run: they end only when
// they are killed.
func TestNothingIsLeft(t *testing.T) {
	scripts := map[string]string{
		"background":      `(` + beating + `) & sleep 0.1`,
		"ignores signals": `(trap "" TERM HUP INT; ` + beating + `) & sleep 0.1`,
		"closed output":   `(` + beating + `) >/dev/null 2>&1 </dev/null & sleep 0.1`,
		"orphan":          `( ( ` + beating + ` ) & ) ; sleep 0.1`,
	}
	run := func(t *testing.T, m sandbox.Method, name, script string) {
		w := newWorld(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if out, err := w.run(ctx, m, sandbox.Policy{}, script); err != nil {
			t.Errorf("%s: %v %s", name, err, out)
		}
		still(t, name, filepath.Join(w.work, "beat"))
	}
	methods(t, func(t *testing.T, m sandbox.Method) {
		var all sync.WaitGroup
		for name, script := range scripts {
			all.Go(func() { run(t, m, name, script) })
		}
		all.Wait()
	}, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Unconfined)
	methods(t, func(t *testing.T, m sandbox.Method) {
		need.Program(t, "setsid")
		run(t, m, "daemon", `setsid sh -c '`+beating+`' & sleep 0.2`)
		run(t, m, "forking daemon", `setsid -f sh -c '`+beating+`'; sleep 0.2`)
	}, sandbox.Bubblewrap, sandbox.Landlock)
}

// An unconfined command may leave its group; then it at least does not delay Run.
func TestDaemonHoldsNoOutput(t *testing.T) {
	need.Program(t, "setsid")
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// The daemon lives until Run has returned.
	out, err := w.run(ctx, sandbox.Unconfined, sandbox.Policy{}, `setsid sh -c 'while test -d . && ! test -e go; do sleep 0.02; done' & echo started`)
	if err != nil || out != "started\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if err := os.WriteFile(filepath.Join(w.work, "go"), nil, 0o666); err != nil {
		t.Error(err)
	}
}

func TestCancel(t *testing.T) {
	need.Time(t)
	methods(t, func(t *testing.T, m sandbox.Method) {
		var all sync.WaitGroup
		for _, tt := range []struct{ name, script, out string }{
			{"sleeping", `sleep 60`, ""},
			{"polite", `trap 'echo bye; exit' TERM; : > up; ` + beating, "bye\n"},
			{"deaf", `trap "" TERM HUP INT; ` + beating, ""},
			{"deaf family", `trap "" TERM; for i in 1 2 3; do (` + beating + `) & done; wait`, ""},
			{"stopped", `kill -STOP $$`, ""},
			{"fork bomb", `trap "" TERM; f() { sleep 1 & if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & wait; fi; }; f 6; ` + beating, ""},
		} {
			all.Go(func() {
				w := newWorld(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(500*time.Millisecond, func() {
					for range 1000 { // a busy machine may not have set the trap yet
						if _, err := os.Stat(filepath.Join(w.work, "up")); err == nil || tt.name != "polite" {
							break
						}
						time.Sleep(10 * time.Millisecond)
					}
					cancel()
				})
				out, err := w.run(ctx, m, sandbox.Policy{}, tt.script)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%s: error %v: %s", tt.name, err, out)
				}
				if !strings.HasSuffix(out, tt.out) {
					t.Errorf("%s: got %q, want %q", tt.name, out, tt.out)
				}
				still(t, tt.name, filepath.Join(w.work, "beat"))
			})
		}
		all.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if out, err := newWorld(t).run(ctx, m, sandbox.Policy{}, `echo x`); !errors.Is(err, context.Canceled) || out != "" {
			t.Errorf("canceled before: %q, %v", out, err)
		}
	}, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Unconfined)
}

// When the program is killed, so are its commands.
func TestProgramDies(t *testing.T) {
	if dir := os.Getenv("STONE_TEST_DIES_IN"); dir != "" {
		w := world{work: dir}
		out, err := w.run(t.Context(), sandbox.Method(os.Getenv("STONE_TEST_METHOD")), sandbox.Policy{}, `trap "" TERM HUP; `+beating)
		t.Fatal(out, err)
	}
	methods(t, func(t *testing.T, m sandbox.Method) {
		w := newWorld(t)
		program := exec.Command(os.Args[0], "-test.run=^TestProgramDies$")
		program.Env = append(os.Environ(), "STONE_TEST_DIES_IN="+w.work, "STONE_TEST_METHOD="+string(m))
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		beat := filepath.Join(w.work, "beat")
		for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(beat); err == nil {
				break
			} else if time.Since(start) > 10*time.Second {
				t.Fatal("the command does not start")
			}
		}
		if err := program.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = program.Wait() // killed
		size := func() int64 {
			info, err := os.Stat(beat)
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		start := time.Now()
		for before := int64(-1); size() != before; time.Sleep(300 * time.Millisecond) {
			if before = size(); time.Since(start) > time.Minute {
				t.Fatal("the command outlives its program")
			}
		}
	}, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Unconfined)
}

func TestStartFails(t *testing.T) {
	methods(t, func(t *testing.T, m sandbox.Method) {
		for name, cmd := range map[string]*sandbox.Cmd{
			"no such directory": {Args: []string{"/bin/sh", "-c", ":"}, Dir: "/no/such/directory"},
			"no such program":   {Args: []string{"/no/such/program"}},
		} {
			c := sandbox.Command(t.Context(), sandbox.Policy{Method: m}, cmd.Args[0], cmd.Args[1:]...)
			c.Dir = cmd.Dir
			if err := c.Run(); err == nil || errors.As(err, new(*sandbox.ExitError)) {
				t.Errorf("%s: error %v, want one that says that the command did not start", name, err)
			}
		}
	}, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Unconfined)
	t.Setenv("PATH", "/no/such/path")
	if err := sandbox.Bubblewrap.Check(); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("without bwrap: %v", err)
	}
}
