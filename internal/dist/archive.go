package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/cli/all"
)

// archived returns an archive with the files in one folder: a zip file for Windows, otherwise a tar file.
func archived(base, system string, at time.Time, files []file) (file, error) {
	var out bytes.Buffer
	if system == "windows" {
		z := zip.NewWriter(&out)
		for _, f := range files {
			h := &zip.FileHeader{Name: base + "/" + f.name, Method: zip.Deflate, Modified: at}
			h.SetMode(os.FileMode(f.mode))
			w, err := z.CreateHeader(h)
			if err == nil {
				_, err = w.Write(f.data)
			}
			if err != nil {
				return file{}, err
			}
		}
		if err := z.Close(); err != nil {
			return file{}, err
		}
		return file{name: base + ".zip", data: out.Bytes()}, nil
	}
	zipped := gzip.NewWriter(&out)
	t := tar.NewWriter(zipped)
	for _, f := range files {
		err := t.WriteHeader(&tar.Header{Name: base + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Format: tar.FormatPAX})
		if err == nil {
			_, err = t.Write(f.data)
		}
		if err != nil {
			return file{}, err
		}
	}
	if err := t.Close(); err != nil {
		return file{}, err
	}
	if err := zipped.Close(); err != nil {
		return file{}, err
	}
	return file{name: base + ".tar.gz", data: out.Bytes()}, nil
}

func command() (*cobra.Command, error) {
	return cli.Command(cli.Config{Name: "stone", Pipeline: cli.FromArgument, Parts: all.Parts()})
}

// manuals returns a function that generates a section 1 manual page for each command.
func manuals(at time.Time) func() ([]file, error) {
	return func() ([]file, error) {
		c, err := command()
		if err != nil {
			return nil, err
		}
		c.DisableAutoGenTag = true
		dir, err := os.MkdirTemp("", "stone-man-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if err := doc.GenManTree(c, &doc.GenManHeader{Title: "STONE", Section: "1", Source: "Stone", Manual: "Stone", Date: &at}, dir); err != nil {
			return nil, err
		}
		return inFolder(dir, "man/man1/", func(string) bool { return true })
	}
}

func completions() ([]file, error) {
	c, err := command()
	if err != nil {
		return nil, err
	}
	var files []file
	for name, write := range map[string]func(*bytes.Buffer) error{
		"stone.bash": func(b *bytes.Buffer) error { return c.GenBashCompletionV2(b, true) },
		"_stone":     func(b *bytes.Buffer) error { return c.GenZshCompletion(b) },
		"stone.fish": func(b *bytes.Buffer) error { return c.GenFishCompletion(b, true) },
		"stone.ps1":  func(b *bytes.Buffer) error { return c.GenPowerShellCompletionWithDesc(b) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, err
		}
		files = append(files, file{"completions/" + name, 0o644, b.Bytes()})
	}
	return files, nil
}

// licences returns the licence files of Stone, Go and every module in a binary.
func licences(info *debug.BuildInfo) ([]file, error) {
	dirs := map[string]string{}
	list := func(path string, args ...string) error {
		out, err := exec.Command("go", args...).Output()
		dirs[path] = strings.TrimSpace(string(out))
		if err != nil {
			return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
		}
		return nil
	}
	if err := list("go", "env", "GOROOT"); err != nil {
		return nil, err
	}
	if err := list("stone", "list", "-m", "-f", "{{.Dir}}", "github.com/stonelayer/stone"); err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if err := list(m.Path, "list", "-m", "-f", "{{.Dir}}", m.Path); err != nil {
			return nil, err
		}
	}
	var files []file
	for path, dir := range dirs {
		into := "licences/" + path + "/"
		if path == "stone" {
			into = ""
		}
		found, err := inFolder(dir, into, isLicence)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s has no licence in %s", path, dir)
		}
		files = append(files, found...)
	}
	return files, nil
}

func isLicence(name string) bool {
	name = strings.ToUpper(name)
	for _, word := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"} {
		if strings.HasPrefix(name, word) && !strings.HasSuffix(name, "-LOGO") {
			return true
		}
	}
	return false
}

// inFolder returns the files of the folder dir that take selects, with their folder renamed to into.
func inFolder(dir, into string, take func(name string) bool) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, e := range entries {
		if !e.Type().IsRegular() || !take(e.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{into + e.Name(), 0o644, data})
	}
	return files, nil
}
