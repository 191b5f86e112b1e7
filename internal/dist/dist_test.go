package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// The binary of this test has the modules of the command. Packed twice, it gives the same files.
func TestDist(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	if err := errors.Join(dist(first, []string{binary}), dist(second, []string{binary})); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(first, "SHA256SUMS"))
	if again, _ := os.ReadFile(filepath.Join(second, "SHA256SUMS")); err != nil || !bytes.Equal(sums, again) {
		t.Errorf("%v: the first time\n%s, the second time\n%s", err, sums, again)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	var files map[string]string
	var parts struct {
		Components   []component
		Dependencies []dependency
	}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data, err := os.ReadFile(filepath.Join(first, name))
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); err != nil || got != sum {
			t.Errorf("%s has the sum %s, %v; listed is %s", name, got, err, sum)
		}
		if strings.HasSuffix(name, ".cdx.json") {
			err = json.Unmarshal(data, &parts)
		} else {
			files, err = unpacked(data)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	base := strings.Join([]string{"stone", versionOf(info), setting(info, "GOOS"), setting(info, "GOARCH")}, "_") + "/"
	for _, m := range info.Deps {
		has := false
		for name := range files {
			has = has || strings.HasPrefix(name, base+"licences/"+m.Path+"/")
		}
		if !has {
			t.Errorf("no licence of %s", m.Path)
		}
	}
	if got, want := len(parts.Components), len(info.Deps)+1; got != want || want < 40 || len(parts.Dependencies[0].DependsOn) != want {
		t.Errorf("%d components, want %d with Go itself", got, want)
	}
	c, err := command()
	if err != nil {
		t.Fatal(err)
	}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if name := base + "man/man1/" + strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"; !strings.Contains(files[name], c.Short) && c.IsAvailableCommand() {
			t.Errorf("%s says nothing of %q", name, c.Short)
		}
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() {
				check(below)
			}
		}
	}
	check(c)
	for name, want := range map[string]string{
		"completions/stone.bash": "__start_stone", "completions/_stone": "#compdef stone", "completions/stone.fish": "complete -c stone",
		"completions/stone.ps1": "Register-ArgumentCompleter -CommandName 'stone'", "LICENSE": "", "licences/go/LICENSE": "Redistribution", "stone": "\x7fELF",
	} {
		if text, ok := files[base+name]; !ok || !strings.Contains(text, want) && setting(info, "GOOS") == "linux" {
			t.Errorf("%s: there: %t, want a text with %q", name, ok, want)
		}
	}
}

func unpacked(data []byte) (map[string]string, error) {
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for in := tar.NewReader(plain); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		files[h.Name] = string(text)
	}
}

func TestZip(t *testing.T) {
	f, err := archived("base", "windows", time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), []file{{"stone.exe", 0o755, []byte("program")}})
	if err != nil || f.name != "base.zip" {
		t.Fatalf("%s, %v", f.name, err)
	}
	z, err := zip.NewReader(bytes.NewReader(f.data), int64(len(f.data)))
	if err != nil || len(z.File) != 1 || z.File[0].Name != "base/stone.exe" || z.File[0].Mode() != 0o755 || z.File[0].Modified.Year() != 2026 {
		t.Errorf("%+v, %v", z, err)
	}
}
