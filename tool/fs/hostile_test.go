//go:build unix

package fs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/tool/fs"
)

// ofOnesOwn returns the tools that a program makes with Resolve.
func ofOnesOwn(root fs.Root) (look, put agent.Middleware) {
	type input struct {
		Path string `json:"path"`
	}
	look = tool.Func("look", "Reads a file.", func(ctx context.Context, in input) (string, error) {
		dir, name, err := root.Resolve(ctx, in.Path)
		if err != nil {
			return "", err
		}
		defer dir.Close()
		text, err := dir.ReadFile(name)
		return string(text), err
	})
	put = tool.Func("put", "Writes a file.", func(ctx context.Context, in input) (string, error) {
		dir, name, err := root.Resolve(ctx, in.Path)
		if err != nil {
			return "", err
		}
		defer dir.Close()
		return "", dir.WriteFile(name, []byte("pwned"), 0o666)
	})
	return look, put
}

// ways returns every tool that takes a path, with what else it needs.
func ways(root fs.Root) map[string]func(*testing.T, string) (string, error) {
	out := map[string]func(*testing.T, string) (string, error){}
	add := func(m agent.Middleware, args ...any) {
		out[m.Name] = func(t *testing.T, path string) (string, error) {
			return call(t, m, append([]any{"path", path}, args...)...)
		}
	}
	look, put := ofOnesOwn(root)
	add(look)
	add(put)
	add(fs.Read(root))
	add(fs.List(root))
	add(fs.Exists(root))
	add(fs.Mkdir(root))
	add(fs.Delete(root, tool.Always))
	add(fs.Write(root), "content", "pwned")
	add(fs.Edit(root), "old_string", "secret", "new_string", "pwned")
	return out
}

// No tool reaches anything outside, whatever the path and the links.
func TestNothingLeadsOut(t *testing.T) {
	top := files(t, map[string]string{"outside/secret.txt": "secret", "work/in.txt": "in", "work/sub/": "", "working/secret.txt": "secret"})
	work, outside := filepath.Join(top, "work"), filepath.Join(top, "outside")
	for name, target := range map[string]string{
		"file-link": "../outside/secret.txt", "dir-link": "../outside", "abs-link": outside,
		"root-link": "/", "sub/up": "../..", "chain": "chain2", "chain2": "dir-link", "loop": "loop",
		"new-link": "../outside/new.txt",
	} {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		"../outside/secret.txt", "sub/../../outside/secret.txt", "..", "../working/secret.txt",
		outside, filepath.Join(outside, "secret.txt"), filepath.Join(work, "../outside/secret.txt"), work + "ing/secret.txt",
		"/etc/passwd", "/", "dir-link/secret.txt", "dir-link/new.txt", "abs-link/secret.txt", "root-link/etc/passwd",
		"sub/up/outside/secret.txt", "chain/secret.txt", "loop/secret.txt", "chain/new-directory/new.txt",
	} {
		for name, run := range ways(fs.Root{Dir: work}) {
			if got, err := run(t, path); err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %s: got %q, error %v", name, path, got, err)
			}
		}
	}
	// A link in the last place: deleting takes the link away, the rest is refused.
	for _, path := range []string{"file-link", "new-link", "root-link", "abs-link", "loop"} {
		for name, run := range ways(fs.Root{Dir: work}) {
			if name == "delete_file" {
				continue
			}
			if got, err := run(t, path); err == nil {
				t.Errorf("%s %s: got %q, want an error", name, path, got)
			}
		}
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 || content(t, filepath.Join(outside, "secret.txt")) != "secret" {
		t.Errorf("outside was changed: %v, %v", entries, err)
	}
}

func TestLinksInside(t *testing.T) {
	dir := files(t, map[string]string{"real.txt": "real", "sub/b.txt": "b"})
	if err := errors.Join(os.Symlink("real.txt", filepath.Join(dir, "link")), os.Symlink("sub", filepath.Join(dir, "dir"))); err != nil {
		t.Fatal(err)
	}
	root := fs.Root{Dir: dir}
	got, err := call(t, fs.Read(root), "path", "link")
	want(t, "read", got, err, "real")
	got, err = call(t, fs.Write(root), "path", "link", "content", "new")
	want(t, "write", got, err, `!symbolic link: name its target "real.txt"`)
	got, err = call(t, fs.Write(root), "path", "dir/new.txt", "content", "new")
	want(t, "write below", got, err, "wrote 3 bytes to dir/new.txt")
	got, err = call(t, fs.List(root))
	want(t, "list", got, err, "dir\tsymbolic link\nlink\tsymbolic link\nreal.txt\t4\nsub/\n")
	if got := content(t, filepath.Join(dir, "real.txt")) + content(t, filepath.Join(dir, "sub/new.txt")); got != "realnew" {
		t.Errorf("files are %q", got)
	}
}

func TestHardLinkIsRefused(t *testing.T) {
	top := files(t, map[string]string{"secret.txt": "secret", "work/": ""})
	work := filepath.Join(top, "work")
	if err := os.Link(filepath.Join(top, "secret.txt"), filepath.Join(work, "mine.txt")); err != nil {
		need.Absent(t, fmt.Sprint("no hard links here: ", err))
	}
	for name, run := range ways(fs.Root{Dir: work}) {
		if name == "read_file" || name == "write_file" || name == "edit_file" {
			got, err := run(t, "mine.txt")
			want(t, name, got, err, "!has 2 names (hard links)")
		}
	}
	if got := content(t, filepath.Join(top, "secret.txt")); got != "secret" {
		t.Errorf("the other name has %q", got)
	}
}

func TestOnly(t *testing.T) {
	dir := files(t, map[string]string{"src/a.go": "a", "docs/d.md": "d", "secret/s": "secret", "srcs/x": "x"})
	if err := errors.Join(os.Symlink("../secret/s", filepath.Join(dir, "src/link")), os.Symlink("../secret", filepath.Join(dir, "src/dir"))); err != nil {
		t.Fatal(err)
	}
	read := fs.Read(fs.Root{Dir: dir, Only: []string{"src", "docs/"}})
	for _, tt := range []struct{ path, want string }{
		{"src/a.go", "a"},
		{filepath.Join(dir, "docs/d.md"), "d"},
		{"src/../docs/d.md", "d"},
		{"secret/s", "!only what lies in src, docs/ may"},
		{"srcs/x", "!must not be used"},
		{".", "!must not be used"},
		{"src/link", "!escapes"},
		{"src/dir/s", "!escapes"},
		{"src/../secret/s", "!must not be used"},
		{"src", "!src is a directory"},
	} {
		got, err := call(t, read, "path", tt.path)
		want(t, tt.path, got, err, tt.want)
	}
	write := fs.Write(fs.Root{Dir: dir, Only: []string{"src"}})
	got, err := call(t, write, "path", "src/new/b.go", "content", "b")
	want(t, "write", got, err, "wrote 1 bytes to src/new/b.go")
	got, err = call(t, write, "path", "docs/d.md", "content", "b")
	want(t, "write", got, err, "!must not be used")
}

func TestOpenNothingSpecial(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("", "s") // the path of a socket has at most 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	listener, err := net.Listen("unix", filepath.Join(short, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	places := map[string]string{"pipe": dir, "socket": short, "null": "/dev", "zero": "/dev"}
	if err := syscall.Mknod(filepath.Join(dir, "device"), syscall.S_IFCHR|0o666, 1<<8|5); err == nil {
		places["device"] = dir // as /dev/zero; only root can make one
	}
	for name, dir := range places {
		for way, run := range ways(fs.Root{Dir: dir}) {
			switch way {
			case "delete_file", "file_exists":
				continue // which open nothing
			}
			type reply struct {
				text string
				err  error
			}
			ended := make(chan reply, 1)
			go func() { text, err := run(t, name); ended <- reply{text, err} }()
			var got reply
			select {
			case got = <-ended:
			case <-time.After(time.Minute): // opening a pipe blocks until it has another end
				t.Fatalf("%s %s: still blocked after a minute", way, name)
			}
			if err := got.err; err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %s: got %q, error %v", way, name, got.text, err)
			}
		}
	}
}

// A file of any size is read in slices, with memory for one slice.
func TestHugeFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "huge")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const size = 10 << 30 // a hole, which takes no room
	_, err = f.WriteString(strings.Repeat("a line of text\n", 100_000))
	if err = errors.Join(err, f.Truncate(size), f.Close()); err != nil {
		need.Absent(t, fmt.Sprintf("no file of %d bytes here: %v", int64(size), err))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	root := fs.Root{Dir: dir}
	got, err := call(t, fs.Read(root), "path", "huge")
	if err != nil || len(got) > 1<<20+200 || !strings.HasSuffix(got, "[lines 1 to 69905; there are more: read on with offset 69906]") {
		t.Errorf("got %d bytes, error %v", len(got), err)
	}
	got, err = call(t, fs.Read(root), "path", "huge", "offset", 99_999, "limit", 2)
	want(t, "slice", got, err, "a line of text\na line of text\n[lines 99999 to 100000; there are more: read on with offset 100001]")
	got, err = call(t, fs.Edit(root), "path", "huge", "old_string", "a", "new_string", "b")
	want(t, "edit", got, err, "!has 10737418240 bytes, more than the 16777216 that can be edited")
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 128<<20 {
		t.Errorf("allocated %d MB", (after.TotalAlloc-before.TotalAlloc)>>20)
	}
}

// A link that another process turns between inside and outside leads a reader astray
// never, however often it is tried.
func TestLinkThatIsTurned(t *testing.T) {
	top := files(t, map[string]string{"secret": "secret", "work/f/": "", "work/good": "good"})
	work := filepath.Join(top, "work")
	stop, done := make(chan struct{}), make(chan error)
	go func() {
		for targets, i := []string{"good", "../secret"}, 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			temp := filepath.Join(work, "temp")
			if err := errors.Join(os.Symlink(targets[i%2], temp), os.Rename(temp, filepath.Join(work, "link"))); err != nil {
				done <- err
				return
			}
		}
	}()
	read, good := fs.Read(fs.Root{Dir: work}), 0
	for range 2000 {
		got, err := call(t, read, "path", "link")
		if err == nil && got != "good" {
			t.Fatalf("read %q", got)
		}
		if err == nil {
			good++
		}
	}
	close(stop)
	if err := <-done; err != nil && err != io.EOF {
		t.Error(err)
	}
	t.Logf("%d of 2000 calls read the file inside", good)
}
