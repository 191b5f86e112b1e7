// Command dist packs binaries of the command stone for a release. "make dist" runs it:
//
//	go run ./internal/dist OUT BINARY...
//
// It reads the platform and the modules from each binary. The archive for a binary contains the binary, completions, manual pages,
// and the licences of all its modules. In the same folder, dist writes a list of modules (CycloneDX) for each binary, and
// SHA256SUMS. Equal binaries produce equal archives, because all file times are the time of the commit.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		log.Fatal("usage: dist OUT BINARY...")
	}
	if err := dist(os.Args[1], os.Args[2:]); err != nil {
		log.Fatal("dist: ", err)
	}
}

// file is a file in an archive.
type file struct {
	name string
	mode int64
	data []byte
}

// dist packs binaries into the folder out, which it creates.
func dist(out string, binaries []string) error {
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, name := range binaries {
		info, err := buildinfo.ReadFile(name)
		if err != nil {
			return err
		}
		made, err := pack(name, info)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, f := range made {
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.data), f.name)
			if err := os.WriteFile(filepath.Join(out, f.name), f.data, 0o666); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), sums.Bytes(), 0o666)
}

// pack returns two files: the archive of a binary, and the list of its modules.
func pack(name string, info *debug.BuildInfo) ([]file, error) {
	binary, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	system, base := setting(info, "GOOS"), "stone"
	files := []file{{"stone", 0o755, binary}}
	if system == "windows" {
		files[0].name = "stone.exe"
	}
	for _, more := range []func() ([]file, error){manuals(commitTime(info)), completions, func() ([]file, error) { return licences(info) }} {
		found, err := more()
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	base = strings.Join([]string{base, versionOf(info), system, setting(info, "GOARCH")}, "_")
	archive, err := archived(base, system, commitTime(info), files)
	if err != nil {
		return nil, err
	}
	parts, err := components(info, sha256.Sum256(binary))
	return []file{archive, {name: base + ".cdx.json", data: parts}}, err
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// commitTime returns the time of the commit, which is the same for every build.
func commitTime(info *debug.BuildInfo) time.Time {
	at, err := time.Parse(time.RFC3339, setting(info, "vcs.time"))
	if err != nil { // built without version control, for example in a test
		return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC) // the earliest time that a zip file can store
	}
	return at.UTC()
}

// versionOf returns the program's version as it is used in file names.
func versionOf(info *debug.BuildInfo) string {
	if v := strings.Trim(info.Main.Version, "()"); v != "" {
		return strings.TrimPrefix(v, "v")
	}
	return "devel"
}
