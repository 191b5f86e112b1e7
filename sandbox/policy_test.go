//go:build unix

package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/sandbox"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	return string(data)
}

// No command can change files that programs outside would run.
func TestProtected(t *testing.T) {
	methods(t, func(t *testing.T, m sandbox.Method) {
		for _, script := range []string{
			`echo x > .git/config`, `echo x > .git/hooks/post-checkout`, `mkdir .git/new`, `rm -r .git`, `mv .git old; mkdir .git; echo x > .git/config`,
			`ln .git/config hard; echo x > hard`, `ln -s .git g; echo x > g/config`, `mv .git/config .`, `echo x > .stone`, `rm .stone; echo x > .stone`,
			`echo x > deep/er/kept/file`, `mv deep/er deep/old; mkdir -p deep/er/kept; echo x > deep/er/kept/file`, `mv deep old; mkdir -p deep/er/kept; echo x > deep/er/kept/file`,
		} {
			w := newWorld(t)
			git, stone, kept := filepath.Join(w.work, ".git/config"), filepath.Join(w.work, ".stone"), filepath.Join(w.work, "deep/er/kept/file")
			for _, path := range []string{git, stone, kept, filepath.Join(w.work, ".git/hooks/old"), filepath.Join(w.work, "src/main.go")} {
				write(t, path, "kept")
			}
			p := sandbox.Policy{ReadOnly: []string{filepath.Dir(kept)}}
			if out, err := w.run(t.Context(), m, p, `echo new > src/main.go && echo x > src/other && cat .git/config deep/er/kept/file`); err != nil || out != "keptkept" {
				t.Fatalf("unprotected files cannot be used: %v %s", err, out)
			}
			out, _ := w.run(t.Context(), m, p, script) // parts of it may succeed
			for _, path := range []string{git, stone, kept} {
				if got := read(t, path); got != "kept" {
					t.Errorf("%s: %s is %q: %s", script, path, got, out)
				}
			}
			if _, err := os.Stat(filepath.Join(w.work, ".git/hooks/post-checkout")); err == nil {
				t.Errorf("%s: there is a hook", script)
			}
		}
	}, sandbox.Bubblewrap, sandbox.Landlock)
}

// A listed name is not protected, and a new protected name is reported.
func TestProtectedByName(t *testing.T) {
	methods(t, func(t *testing.T, m sandbox.Method) {
		w := newWorld(t)
		write(t, filepath.Join(w.work, ".git/config"), "old")
		p := sandbox.Policy{Writable: []string{filepath.Join(w.work, ".git")}}
		if out, err := w.run(t.Context(), m, p, `echo new > .git/config`); err != nil || read(t, filepath.Join(w.work, ".git/config")) != "new\n" {
			t.Errorf("%v %s", err, out)
		}
		out, err := w.run(t.Context(), m, sandbox.Policy{}, `mkdir .stone`)
		if err != nil && errors.As(err, new(*sandbox.ExitError)) {
			return // it could not, as Landlock has protected the directory with .git in it
		}
		if err == nil || !strings.Contains(err.Error(), ".stone, which is protected") {
			t.Errorf("a command made .stone: error %v: %s", err, out)
		}
		linked := newWorld(t)
		if err := os.Symlink("elsewhere", filepath.Join(linked.work, ".git")); err != nil {
			t.Fatal(err)
		}
		if out, err := linked.run(t.Context(), m, sandbox.Policy{}, `true`); err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("a link in place of .git: %v %s", err, out)
		}
	}, sandbox.Bubblewrap, sandbox.Landlock)
}

// A command cannot widen the grants of the next one by replacing granted paths with
// links, in any order of the list.
func TestNestedGrants(t *testing.T) {
	methods(t, func(t *testing.T, m sandbox.Method) {
		for _, swap := range []string{`rm -r sub && ln -s "$OUT" sub`, `rm -r sub && ln -s ../outside sub`, `rm -r sub && mkdir sub && ln -s "$OUT" sub/x`} {
			w := newWorld(t)
			link := filepath.Join(filepath.Dir(w.work), "link")
			if err := errors.Join(os.MkdirAll(filepath.Join(w.work, "sub/x"), 0o777), os.Symlink("work/sub/x", link)); err != nil {
				t.Fatal(err)
			}
			sub := filepath.Join(w.work, "sub")
			for name, p := range map[string]sandbox.Policy{
				"below": {Writable: []string{sub, filepath.Join(sub, "x")}}, "through a link": {Writable: []string{link}},
				"read": {ReadOnly: []string{link}}, "missing": {ReadOnly: []string{filepath.Join(w.work, "later")}},
			} {
				if out, err := w.run(t.Context(), m, sandbox.Policy{}, swap+`; ln -sfn "$OUT" later`); err != nil {
					t.Fatalf("%v %s", err, out)
				}
				out, err := w.run(t.Context(), m, p, `cat "$OUT/secret" sub/secret sub/x/secret later/secret; echo x > "$OUT/secret"; echo x > "$OUT/new"`)
				if strings.Contains(out, "secret\x00") || strings.HasPrefix(out, "secret") || read(t, filepath.Join(w.outside, "secret")) != "secret" || read(t, filepath.Join(w.outside, "new")) != "" {
					t.Errorf("%s, %s: %v %s", name, swap, err, out)
				}
				if err := errors.Join(os.RemoveAll(sub), os.MkdirAll(filepath.Join(sub, "x"), 0o777)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}, sandbox.Bubblewrap, sandbox.Landlock)
}

// Granting everything grants neither the kernel's files nor the devices.
func TestWholeSystem(t *testing.T) {
	methods(t, func(t *testing.T, m sandbox.Method) {
		for _, tt := range []struct {
			script string
			ok     bool
		}{
			{`echo x > "$OUT/new" && cat "$OUT/new"`, true},
			{`test -r /etc/passwd && ls / >/dev/null`, true},
			{`: >> /proc/sys/kernel/core_pattern`, false},
			{`: >> /proc/sysrq-trigger`, false},
			{`for f in /sys/kernel/mm/transparent_hugepage/enabled /sys/power/state /sys/kernel/uevent_helper; do test ! -e $f || { : >> $f; } 2>/dev/null && exit 0; done; exit 1`, false},
			{`for f in /dev/mem /dev/sd? /dev/vd? /dev/nvme* /dev/kmsg; do test -e $f && head -c 1 $f >/dev/null 2>&1 && exit 0; done; exit 1`, false},
			{`tr '\0' '\n' < /proc/$PROGRAM/environ`, false},
		} {
			w := newWorld(t)
			if out, err := w.run(t.Context(), m, sandbox.Policy{Writable: []string{"/"}}, tt.script); (err == nil) != tt.ok {
				t.Errorf("%s: %v, want success %v: %s", tt.script, err, tt.ok, out)
			}
		}
		for _, path := range []string{"/proc", "/proc/sys", "/sys", "relative"} {
			if out, err := newWorld(t).run(t.Context(), m, sandbox.Policy{Writable: []string{path}}, `true`); err == nil {
				t.Errorf("%s can be granted: %s", path, out)
			}
		}
	}, sandbox.Bubblewrap, sandbox.Landlock)
}

func TestLimits(t *testing.T) {
	need.Time(t)
	methods(t, func(t *testing.T, m sandbox.Method) {
		for _, tt := range []struct {
			limits       sandbox.Limits
			script, want string
		}{
			{sandbox.Limits{Processes: 20}, `i=0; while [ $i -lt 60 ]; do sleep 30 & i=$((i+1)); done; wait`, "killed: more than 20 processes"},
			{sandbox.Limits{Processes: 20}, `f() { sleep 0.01; f | f & }; f; sleep 30`, "killed: more than 20 processes"},
			{sandbox.Limits{Memory: 64 << 20}, `head -c 300000000 /dev/zero | tail -c 300000000 | wc -c; sleep 1`, "illed"},
			{sandbox.Limits{FileSize: 1 << 20}, `head -c 3000000 /dev/zero > big; echo "$?"; wc -c < big`, "1048576"},
			{sandbox.Limits{OpenFiles: 20}, `ulimit -n`, "20"},
			{sandbox.Limits{CPU: 1e9}, `ulimit -t; while :; do :; done`, "1"},
			{sandbox.Limits{}, `ulimit -n; ulimit -c; ulimit -H -c`, "4096\n0\n0"},
		} {
			w := newWorld(t)
			out, err := w.run(t.Context(), m, sandbox.Policy{Limits: tt.limits}, tt.script)
			if err != nil {
				out += err.Error()
			}
			// A bomb that grows faster than it is counted reaches the limit of the kernel.
			contained := strings.Contains(tt.script, "f | f") && strings.Contains(out, "Cannot fork")
			if !strings.Contains(out, tt.want) && !contained {
				t.Errorf("%+v: %s\ngot %s, want %s", tt.limits, tt.script, out, tt.want)
			}
			still(t, tt.script, filepath.Join(w.work, "big"))
		}
	}, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Unconfined)
}

// A command can neither end its supervisor nor outlive it.
func TestSupervisorHolds(t *testing.T) {
	methods(t, func(t *testing.T, m sandbox.Method) {
		w := newWorld(t)
		out, err := w.run(t.Context(), m, sandbox.Policy{}, `kill -9 $PPID; kill -9 -1; kill -STOP $PPID; (`+beating+`) & sleep 0.2; echo done`)
		if err == nil && !strings.HasSuffix(out, "done\n") {
			t.Errorf("%s", out)
		}
		still(t, out, filepath.Join(w.work, "beat"))
	}, sandbox.Bubblewrap, sandbox.Landlock)
}
