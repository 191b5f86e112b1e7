//go:build unix

package regular_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stonelayer/stone/internal/regular"
)

// Nothing endless is read, and nothing waits for a writer.
func TestRead(t *testing.T) {
	at := func(name string) string { return filepath.Join(t.TempDir(), name) }
	pipe, link, sparse, good := at("pipe"), at("link"), at("sparse"), at("good")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{sparse: "", good: "text"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(sparse, 10<<30); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		pipe: "not a regular file", link: "not a regular file", t.TempDir(): "not a regular file",
		sparse: "larger than 8 MiB", at("missing"): "no such file",
	} {
		if data, err := regular.Read(path, regular.Config); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %d bytes, %v, want %q", path, len(data), err, want)
		}
	}
	if data, err := regular.Read(good, 4); err != nil || string(data) != "text" {
		t.Errorf("%q, %v", data, err)
	}
}
