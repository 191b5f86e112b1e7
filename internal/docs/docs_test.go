package docs

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/pgtest"
)

var update = flag.Bool("update", false, "write what commands print into the pages")

// notRun lists the commands that the pages show and this test does not run.
var notRun = map[string]string{
	"git clone https://github.com/stonelayer/stone": "a page starts beside a checkout",

	"make test":     "it runs most of these tests",
	"make test-all": "it runs this test",
	"make bench":    "it takes many minutes",
	"go vet ./...":  "make lint runs it",

	"sudo -u postgres createuser --pwprompt stone":                                         "the test has a server of its own",
	"sudo -u postgres createdb --owner stone --encoding UTF8 --template template0 stone":   "the same",
	"export STONE_DB='postgres://stone:PASSWORD@db.example.com/stone?sslmode=verify-full'": "the same",
}

func TestPages(t *testing.T) {
	need.Time(t)
	root := moduleRoot(t)
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md"} {
		pages = append(pages, filepath.Join(root, name))
	}
	pages = append(pages, below...)
	for _, page := range pages {
		name, _ := filepath.Rel(root, page)
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if blocks := blocksOf(string(text)); len(blocks) > 0 {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newSession(t, root)
				if strings.Contains(string(text), "export STONE_DB=") {
					s.env = append(s.env, "STONE_DB="+pgtest.Database(t))
				}
				s.page(blocks)
				if *update {
					rewrite(t, page, string(text), blocks)
				}
			})
		}
	}
}

// TestLinks finds links of the pages to files and headings that do not exist.
func TestLinks(t *testing.T) {
	root := moduleRoot(t)
	link := regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	for _, name := range tracked(t, root) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		prose := regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`").ReplaceAllString(string(text), "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(m[1], "://") || m[1]+m[2] == "" {
				continue
			}
			file := filepath.Join(root, filepath.Dir(name), cmp.Or(m[1], filepath.Base(name)))
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			} else if page, _ := os.ReadFile(file); m[2] != "" && !slices.Contains(anchors(string(page)), m[2][1:]) {
				t.Errorf("%s links to %s%s: the page has no such heading", name, m[1], m[2])
			}
		}
	}
}

// anchors returns the addresses of a page's headings.
func anchors(page string) (out []string) {
	page = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(page, "")
	for _, h := range regexp.MustCompile("(?m)^#+ (.*)$").FindAllStringSubmatch(page, -1) {
		text := regexp.MustCompile(`[^\pL\pN_\- ]`).ReplaceAllString(strings.ToLower(h[1]), "")
		out = append(out, strings.ReplaceAll(text, " ", "-"))
	}
	return out
}

// TestEnds finds guides that do not end with what to read next, and guides that the list of pages lacks.
func TestEnds(t *testing.T) {
	root := moduleRoot(t)
	list, err := os.ReadFile(filepath.Join(root, "docs", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	guides, err := filepath.Glob(filepath.Join(root, "docs", "how-to", "*.md"))
	if err != nil || len(guides) == 0 {
		t.Fatalf("%d guides: %v", len(guides), err)
	}
	for _, guide := range guides {
		name := "how-to/" + filepath.Base(guide)
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > 150 {
			t.Errorf("docs/%s has %d lines, want at most 150: split it by the questions that it answers", name, n)
		}
		paragraphs := strings.Split(strings.TrimSpace(string(text)), "\n\n")
		if last := paragraphs[len(paragraphs)-1]; !strings.HasPrefix(last, "Next: [") {
			t.Errorf("docs/%s ends with %q: want Next: and links", name, last)
		}
		if !strings.Contains(string(list), "("+name+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}

// A block is a fenced part of a page.
type block struct {
	line  int // of the opening fence, from 1
	end   int // of the closing fence, from 0
	lang  string
	lines []string
}

// rewrite writes the blocks back, since console puts the output into them.
func rewrite(t *testing.T, page, text string, blocks []block) {
	var out []string
	lines := strings.Split(text, "\n")
	at := 0
	for _, b := range blocks {
		out = append(append(out, lines[at:b.line]...), b.lines...)
		at = b.end
	}
	if err := os.WriteFile(page, []byte(strings.Join(append(out, lines[at:]...), "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
}

func blocksOf(text string) []block {
	var out []block
	var b *block
	for i, line := range strings.Split(text, "\n") {
		switch {
		case b == nil && strings.HasPrefix(line, "```"):
			b = &block{line: i + 1, lang: strings.TrimPrefix(line, "```")}
		case b != nil && line == "```":
			b.end = i
			out, b = append(out, *b), nil
		case b != nil:
			b.lines = append(b.lines, line)
		}
	}
	return out
}

// A session is the test of one page: a directory, and the files of its blocks.
type session struct {
	t    *testing.T
	root string // of the module
	work string // where the commands of the page run
	dir  string // the current directory of the page's shell is kept in this file
	env  []string
}

func newSession(t *testing.T, root string) *session {
	home := t.TempDir()
	s := &session{t: t, root: root, work: filepath.Join(home, "work"), dir: filepath.Join(home, "dir")}
	if err := os.Mkdir(s.work, 0o777); err != nil {
		t.Fatal(err)
	}
	s.env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "STONE_") || strings.HasPrefix(name, "OPENAI_") || strings.HasPrefix(name, "ANTHROPIC_") || name == "GOFLAGS"
	})
	// -trimpath lets the copies of the module share the build cache.
	s.env = append(s.env, "GOFLAGS=-trimpath -ldflags=-w", "HOME="+home, "GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"), "GOPATH="+filepath.Join(home, "go"),
		"PATH="+filepath.Join(home, "go", "bin")+string(os.PathListSeparator)+filepath.Dir(stone(t, root))+string(os.PathListSeparator)+os.Getenv("PATH"))
	copyModule(t, root, filepath.Join(s.work, "stone"))
	return s
}

func (s *session) page(blocks []block) {
	for i := range blocks {
		b := &blocks[i]
		if name := fileOf(*b); name != "" && b.lang != "sh" && b.lang != "console" {
			s.write(name, strings.Join(b.lines, "\n")+"\n")
			continue
		}
		switch b.lang {
		case "go":
			s.compiled(*b)
		case "sh":
			s.shell(*b, s.runnable(b.lines))
		case "console":
			s.console(b)
		}
	}
}

// fileOf returns the file name in the first line of a block, or "".
func fileOf(b block) string {
	if len(b.lines) == 0 {
		return ""
	}
	m := regexp.MustCompile(`^(?://|#|;+) ([\w./-]+\.\w+|go\.mod)$`).FindStringSubmatch(b.lines[0])
	if m == nil {
		return ""
	}
	return m[1]
}

func (s *session) write(name, text string) {
	file := filepath.Join(s.cwd(), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		s.t.Fatal(err)
	}
}

// cwd returns the current directory of the page's shell.
func (s *session) cwd() string {
	if dir, err := os.ReadFile(s.dir); err == nil {
		return strings.TrimSpace(string(dir))
	}
	return s.work
}

// runnable leaves out the commands that are not run.
func (s *session) runnable(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		command, _, _ := strings.Cut(line, "#")
		_, skipped := notRun[strings.TrimSpace(command)]
		return skipped
	})
}

// shell runs lines in the current directory of the page and returns their output.
func (s *session) shell(b block, lines []string) string {
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute)
	defer cancel()
	script := "trap 'pwd > \"" + s.dir + "\"' EXIT\n" + strings.Join(lines, "\n") + "\n"
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.cwd(), s.env, 10*time.Second
	var out, all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &all
	err := cmd.Run()
	if err != nil && b.lang == "sh" {
		s.t.Fatalf("line %d: %s\n%v\n%s%s", b.line, strings.Join(lines, "\n"), err, out.String(), all.String())
	}
	return out.String() + all.String()
}

// console runs the commands of a block and compares their output.
func (s *session) console(b *block) {
	var printed []string
	for i := 0; i < len(b.lines); {
		command, ok := strings.CutPrefix(b.lines[i], "$ ")
		if !ok {
			s.t.Fatalf("line %d: want a command, $ …, got %q", b.line+i+1, b.lines[i])
		}
		end := i + 1
		for end < len(b.lines) && !strings.HasPrefix(b.lines[end], "$ ") {
			end++
		}
		want := strings.TrimSpace(strings.Join(b.lines[i+1:end], "\n"))
		got := strings.TrimSpace(s.shell(*b, []string{command}))
		printed = append(printed, b.lines[i])
		switch {
		case matches(want, got):
			printed = append(printed, b.lines[i+1:end]...)
		case *update:
			printed = append(printed, strings.Split(got, "\n")...)
		default:
			s.t.Errorf("line %d: %s\nprints:\n%s\nthe page says:\n%s", b.line+i+1, command, got, want)
		}
		i = end
	}
	b.lines = printed
}

// matches reports whether text matches a pattern, in which … matches any text.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "…")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile(`(?s)\A` + strings.Join(parts, `.*?`) + `\z`).MatchString(text)
}

// compiled checks a Go block that is no file of its own against the compiled code: its
// lines must be in one Go file, in their order and next to each other.
func (s *session) compiled(b block) {
	want := plain(strings.Join(b.lines, "\n"))
	for _, text := range goFiles(s.t, s.root) {
		if strings.Contains(text, want) {
			return
		}
	}
	own, _ := filepath.Glob(filepath.Join(s.cwd(), "*.go"))
	for _, file := range own {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(plain(string(text)), want) {
			return
		}
	}
	s.t.Errorf("line %d: no Go file has these lines: put them into an Example, or begin the block with a file name\n%s", b.line, strings.Join(b.lines, "\n"))
}

// plain is source without its indentation and empty lines, in comments too.
func plain(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

var goFiles = func() func(*testing.T, string) []string {
	var once sync.Once
	var texts []string
	return func(t *testing.T, root string) []string {
		once.Do(func() {
			for _, name := range tracked(t, root) {
				if filepath.Ext(name) == ".go" {
					if text, err := os.ReadFile(filepath.Join(root, name)); err == nil {
						texts = append(texts, plain(string(text)))
					}
				}
			}
		})
		return texts
	}
}()

// stone builds the command once.
var stone = func() func(*testing.T, string) string {
	var once sync.Once
	var file string
	return func(t *testing.T, root string) string {
		once.Do(func() {
			dir, err := os.MkdirTemp("", "stone-docs")
			if err != nil {
				t.Fatal(err)
			}
			builtIn = dir
			file = filepath.Join(dir, "stone")
			if out, err := command(root, "go", "build", "-trimpath", "-o", file, "./cmd/stone").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
		return file
	}
}()

var builtIn string

func TestMain(m *testing.M) {
	code := m.Run()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

func command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return cmd
}

func moduleRoot(t *testing.T) string {
	out, err := command(".", "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func goEnv(t *testing.T, name string) string {
	out, err := command(".", "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// tracked lists the files of the repository.
func tracked(t *testing.T, root string) []string {
	out, err := command(root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		need.Absent(t, "this is no checkout")
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

// copyModule gives a page a checkout of its own.
func copyModule(t *testing.T, root, to string) {
	for _, name := range tracked(t, root) {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil || info.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(to, name)
		if err := cmp.Or(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, text, info.Mode().Perm())); err != nil {
			t.Fatal(fmt.Errorf("copy %s: %w", name, err))
		}
	}
}
