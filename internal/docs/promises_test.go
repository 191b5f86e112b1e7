package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each promise of SECURITY.md names the tests that attack it, and they exist.
func TestPromisesHaveTests(t *testing.T) {
	root := moduleRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| promise |")
	table, _, _ = strings.Cut(table, "\n\n")
	groups := regexp.MustCompile("((?:`Test\\w+`(?:, )?)+) in `([\\w/]+)`")
	word := regexp.MustCompile("`([^`]+)`")
	promises := 0
	for _, row := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(row, "|")
		if len(cells) != 5 {
			t.Fatalf("%q has %d cells", row, len(cells))
		}
		promises++
		named := 0
		for _, g := range groups.FindAllStringSubmatch(cells[3], -1) {
			files, err := filepath.Glob(filepath.Join(root, g[2], "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			var code strings.Builder
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				code.Write(text)
			}
			for _, name := range word.FindAllStringSubmatch(g[1], -1) {
				if named++; !strings.Contains(code.String(), "\nfunc "+name[1]+"(t *testing.T) {") {
					t.Errorf("%s: there is no %s in %s", cells[1], name[1], g[2])
				}
			}
		}
		for _, name := range word.FindAllStringSubmatch(cells[3], -1) {
			if !strings.HasSuffix(name[1], ".txtar") {
				continue
			}
			named++
			if _, err := os.Stat(filepath.Join(root, name[1])); err != nil {
				t.Errorf("%s: %v", cells[1], err)
			}
		}
		if named == 0 {
			t.Errorf("no test is named for: %s", cells[1])
		}
	}
	if promises < 10 {
		t.Errorf("%d promises", promises)
	}
}
