package fs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/tool/fs"
)

// call runs a tool as an agent does. The arguments are pairs of name and value.
func call(t *testing.T, m agent.Middleware, args ...any) (string, error) {
	t.Helper()
	if m.Tool.Err != nil {
		t.Fatal(m.Tool.Err)
	}
	in := map[string]any{}
	for i := 0; i < len(args); i += 2 {
		in[args[i].(string)] = args[i+1]
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	result, err := m.Tool.Run(t.Context(), data)
	return result.Text, err
}

// want checks the answer of a call, or its error if want begins with "!".
func want(t *testing.T, what, got string, err error, want string) {
	t.Helper()
	if problem, ok := strings.CutPrefix(want, "!"); ok {
		if err == nil || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %q, error %v; want an error of one line with %q", what, got, err, problem)
		}
	} else if err != nil || got != want {
		t.Errorf("%s: got %q, error %v; want %q", what, got, err, want)
	}
}

// files makes a directory with files; names that end in a slash are directories.
func files(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range contents {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o777); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRead(t *testing.T) {
	dir := files(t, map[string]string{
		"a.txt":      "one\ntwo\nthree\n",
		"open.txt":   "one\ntwo",
		"empty.txt":  "",
		"wide.txt":   "ab\n" + strings.Repeat("é", 40) + "\ncd\n",
		"many.txt":   strings.Repeat("0123456789\n", 10),
		"bin":        "ELF\x00\x01",
		"latin1.txt": "caf\xe9",
		"sub/b.txt":  "b",
	})
	read := fs.Read(fs.Root{Dir: dir, MaxRead: 35})
	for _, tt := range []struct {
		path          string
		offset, limit int
		want          string
	}{
		{"a.txt", 0, 0, "one\ntwo\nthree\n"},
		{"./sub/../a.txt", 1, 3, "one\ntwo\nthree\n"},
		{filepath.Join(dir, "a.txt"), 3, 0, "three\n"},
		{"a.txt", 2, 1, "two\n[lines 2 to 2; there are more: read on with offset 3]"},
		{"a.txt", 3, 1 << 62, "three\n"},
		{"a.txt", 4, 0, "!has only 3 lines"},
		{"a.txt", -1, 0, "!cannot be negative"},
		{"open.txt", 2, 5, "two"},
		{"open.txt", 3, 0, "!has only 2 lines"},
		{"empty.txt", 0, 0, "[empty.txt is empty]"},
		{"many.txt", 0, 0, "0123456789\n0123456789\n0123456789\n[lines 1 to 3; there are more: read on with offset 4]"},
		{"many.txt", 8, 0, "0123456789\n0123456789\n0123456789\n"},
		{"wide.txt", 1, 0, "ab\n[lines 1 to 1; there are more: read on with offset 2]"},
		{"wide.txt", 2, 0, strings.Repeat("é", 17) + "\n[line 2 is longer than the 35 bytes that one call returns: its rest is not shown; the next line has offset 3]"},
		{"wide.txt", 3, 0, "cd\n"},
		{"bin", 0, 0, "!binary"},
		{"latin1.txt", 0, 0, "!binary"},
		{"sub", 0, 0, "!sub is a directory"},
		{"none.txt", 0, 0, "!none.txt does not exist"},
		{"a.txt/x", 0, 0, "!a.txt/x: not a directory"},
	} {
		got, err := call(t, read, "path", tt.path, "offset", tt.offset, "limit", tt.limit)
		want(t, fmt.Sprintf("%s from %d, %d lines", tt.path, tt.offset, tt.limit), got, err, tt.want)
	}
}

// Pages that are put together again are the file, whatever the sizes.
func TestReadPages(t *testing.T) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "%d %s\n", i, strings.Repeat("x", i%97))
	}
	dir := files(t, map[string]string{"f": text.String()})
	for _, limit := range []int{0, 1000, 4999, 5000} {
		read := fs.Read(fs.Root{Dir: dir, MaxRead: 100 << 10})
		var got strings.Builder
		for offset := 1; offset > 0; {
			result, err := read.Tool.Run(t.Context(), json.RawMessage(fmt.Sprintf(`{"path":"f","offset":%d,"limit":%d}`, offset, limit)))
			if err != nil {
				t.Fatal(err)
			}
			got.WriteString(result.Text[:result.Meta["bytes"].(int)])
			offset, _ = result.Meta["next_offset"].(int)
		}
		if got.String() != text.String() {
			t.Errorf("limit %d: %d bytes in pages, want %d", limit, got.Len(), text.Len())
		}
	}
}

func TestReadStopsWhenCanceled(t *testing.T) {
	dir := files(t, map[string]string{"f": "a\nb\n"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fs.Read(fs.Root{Dir: dir}).Tool.Run(ctx, json.RawMessage(`{"path":"f"}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestWrite(t *testing.T) {
	dir := files(t, map[string]string{"old.txt": "old", "run.sh": "#!/bin/sh", "locked.txt": "x", "sub/": ""})
	if err := errors.Join(os.Chmod(filepath.Join(dir, "run.sh"), 0o755), os.Chmod(filepath.Join(dir, "locked.txt"), 0o444)); err != nil {
		t.Fatal(err)
	}
	write := fs.Write(fs.Root{Dir: dir, MaxFile: 100})
	for _, tt := range []struct{ path, content, want string }{
		{"new.txt", "héllo", "wrote 6 bytes to new.txt"},
		{"deep/er/new.txt", "", "wrote 0 bytes to deep/er/new.txt"},
		{"old.txt", "new", "wrote 3 bytes to old.txt"},
		{"run.sh", "#!/bin/bash", "wrote 11 bytes to run.sh"},
		{"big.txt", strings.Repeat("x", 101), "!101 bytes, more than the 100"},
		{"sub", "x", "!sub is a directory"},
		{"", "x", "!is a directory"},
		{"old.txt/x", "x", "!old.txt/x: not a directory"},
		{"locked.txt", "y", "!locked.txt is read-only"},
		{strings.Repeat("n", 300), "x", "!name too long"},
		{"nul\x00", "x", "!invalid argument"},
	} {
		got, err := call(t, write, "path", tt.path, "content", tt.content)
		want(t, tt.path, got, err, tt.want)
		if err == nil && content(t, filepath.Join(dir, tt.path)) != tt.content {
			t.Errorf("%s: got %q", tt.path, content(t, filepath.Join(dir, tt.path)))
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "run.sh")); err != nil || info.Mode() != 0o755 {
		t.Errorf("run.sh: mode %v, error %v; want 0755", info.Mode(), err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".stone-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestEdit(t *testing.T) {
	const text = "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n"
	for _, tt := range []struct{ text, old, new, want, after string }{
		{text, "func b", "func c", "edited f at line 5", strings.Replace(text, "func b", "func c", 1)},
		{text, "a() {\n\treturn 1", "a() {\n\treturn 2", "edited f at line 1", strings.Replace(text, "return 1", "return 2", 1)},
		{text, text, "", "edited f at line 1", ""},
		{text, "return 1", "return 2", "!at the lines 2, 6: add text", text},
		{"aaa", "aa", "b", "!at the lines 1, 1", "aaa"},
		{strings.Repeat("x\n", 50), "x", "y", "!more than once", strings.Repeat("x\n", 50)},
		{text, "return 3", "x", "!read the file and copy", text},
		{text, "    return 1\n}\n\nfunc b", "x", "!other white space", text},
		{"a\r\nb\r\n", "a\nb", "c\nd\r\ne", "edited f at line 1", "c\r\nd\r\ne\r\n"},
		{"a\r\nb\r\n", "b", "c\nd", "edited f at line 2", "a\r\nc\r\nd\r\n"},
		{"a\r\nb\r\nc\n", "a\nb", "c", `!lines end in "\r\n"`, "a\r\nb\r\nc\n"},
		{text, "", "x", "!old_string is empty", text},
		{text, "func a", "func a", "!nothing would change", text},
		{text, "func a", strings.Repeat("x", 100), "!more than the 100", text},
		{strings.Repeat("y", 101), "x", "y", "!has 101 bytes", strings.Repeat("y", 101)},
	} {
		dir := files(t, map[string]string{"f": tt.text})
		got, err := call(t, fs.Edit(fs.Root{Dir: dir, MaxFile: 100}), "path", "f", "old_string", tt.old, "new_string", tt.new)
		want(t, tt.old, got, err, tt.want)
		if after := content(t, filepath.Join(dir, "f")); after != tt.after {
			t.Errorf("%q: file is %q, want %q", tt.old, after, tt.after)
		}
	}
}

// Of edits by several agents at the same time none is lost.
func TestEditsTakeTurns(t *testing.T) {
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "<%d>\n", i)
	}
	dir := files(t, map[string]string{"f": text.String()})
	failed := make(chan error)
	for i := range 20 {
		edit := fs.Edit(fs.Root{Dir: dir})
		go func() {
			_, err := edit.Tool.Run(t.Context(), json.RawMessage(fmt.Sprintf(`{"path":"f","old_string":"<%d>","new_string":"done"}`, i)))
			failed <- err
		}()
	}
	for range 20 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if got := content(t, filepath.Join(dir, "f")); got != strings.Repeat("done\n", 20) {
		t.Errorf("got %q", got)
	}
}

func TestListMkdirExistsDelete(t *testing.T) {
	dir := files(t, map[string]string{"b.txt": "12345", "a/x": "", "odd\nname": ""})
	root := fs.Root{Dir: dir}
	mkdir, exists, list := fs.Mkdir(root), fs.Exists(root), fs.List(root)
	remove := fs.Delete(root, tool.Always)
	for i, tt := range []struct {
		m    agent.Middleware
		path string
		want string
	}{
		{list, "", "a/\nb.txt\t5\n\"odd\\nname\"\t0\n"},
		{list, "b.txt", "!b.txt is not a directory"},
		{list, "none", "!none does not exist"},
		{mkdir, "c/d/e", "c/d/e is there"},
		{mkdir, "c/d/e", "c/d/e is there"},
		{mkdir, "b.txt", "!b.txt: file exists"},
		{list, "c/d/e", "[c/d/e is empty]\n"},
		{exists, "c/d/e", "true"},
		{exists, "b.txt", "true"},
		{exists, "none/at/all", "false"},
		{remove, "c/d", "!c/d: directory not empty"},
		{remove, "c/d/e", "deleted c/d/e"},
		{remove, "b.txt", "deleted b.txt"},
		{remove, "b.txt", "!b.txt does not exist"},
		{remove, ".", "!cannot be deleted"},
		{exists, "b.txt", "false"},
	} {
		got, err := call(t, tt.m, "path", tt.path)
		want(t, fmt.Sprintf("%d: %s %q", i, tt.m.Name, tt.path), got, err, tt.want)
	}
}

func TestListIsBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 1100 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := call(t, fs.List(fs.Root{Dir: dir}))
	if err != nil || strings.Count(got, "\n") != 1001 || !strings.HasSuffix(got, "[1000 entries; there are more, which are not shown]\n") {
		t.Errorf("got %d lines, error %v", strings.Count(got, "\n"), err)
	}
}

func TestDeleteAsks(t *testing.T) {
	dir := files(t, map[string]string{"f": ""})
	got, err := call(t, fs.Delete(fs.Root{Dir: dir}, tool.Approver{}), "path", "f")
	if err != nil || !strings.Contains(got, "approval") {
		t.Errorf("got %q, error %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "f")); err != nil {
		t.Error(err)
	}
}

func TestToolsDeclareThemselves(t *testing.T) {
	root := fs.Root{}
	for _, tt := range []struct {
		m        agent.Middleware
		name     string
		parallel bool
		effects  string
	}{
		{fs.Read(root), "read_file", true, "fs/read"},
		{fs.List(root), "list_directory", true, "fs/read"},
		{fs.Exists(root), "file_exists", true, "fs/read"},
		{fs.Write(root), "write_file", false, "fs/write"},
		{fs.Edit(root), "edit_file", false, "fs/read fs/write"},
		{fs.Mkdir(root), "mkdir", false, "fs/write"},
		{fs.Delete(root, tool.Approver{}), "delete_file", false, "fs/write"},
	} {
		got := tt.m.Tool
		if got.Err != nil || tt.m.Name != tt.name || got.Name != tt.name || got.Parallel != tt.parallel || strings.Join(got.Effects, " ") != tt.effects {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}
