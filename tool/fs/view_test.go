package fs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/tool/fs"
)

func TestView(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{"a.png": "\x89PNG\r\n\x1a\n", "a.pdf": "%PDF-1.7", "a.txt": "text", "a.bin": "\x00\x01", "empty.png": "", ".git/a.png": "\x89PNG\r\n\x1a\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	big := filepath.Join(dir, "big.png")
	if err := os.WriteFile(big, []byte("\x89PNG\r\n\x1a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, llm.MaxMedia+1); err != nil {
		t.Fatal(err)
	}
	view := fs.View(fs.Root{Dir: dir})
	for path, want := range map[string]string{
		"a.png":      "a.png, image/png, 8 bytes",
		"a.pdf":      "a.pdf, application/pdf, 8 bytes",
		"a.txt":      "a.txt is not a picture, PDF document, sound or video; if it is text, read it with read_file",
		"a.bin":      "a.bin is not a picture, PDF document, sound or video; if it is text, read it with read_file",
		"empty.png":  "empty.png is not a picture, PDF document, sound or video; if it is text, read it with read_file",
		"none.png":   "none.png does not exist",
		"big.png":    "big.png has 20000001 bytes, but at most 20000000 can be shown",
		"../a.png":   "leads out of the directory",
		".git/a.png": ".git",
	} {
		input, _ := json.Marshal(map[string]string{"path": path})
		res, err := view.Tool.Run(t.Context(), input)
		got := res.Text
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || (err == nil) != (len(res.Media) == 1) {
			t.Errorf("%s: got %q with %d media\nwant %q", path, got, len(res.Media), want)
		}
	}
}
