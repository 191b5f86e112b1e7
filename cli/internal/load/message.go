package load

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stonelayer/stone/internal/text"
)

var position = regexp.MustCompile(`^(\S.*?\.go):(\d+(?::\d+)?): (.*)$`)

// compileError makes one line of the go command's errors: the first error, with its
// place as seen from the working directory, and the number of others.
func (b *builder) compileError(stderr string, err error) error {
	var first string
	more := 0
	lines := strings.Split(stderr, "\n")
	for i, line := range lines {
		at := position.FindStringSubmatch(line)
		switch {
		case at == nil:
		case first != "":
			more++
		default:
			first = fmt.Sprintf("%s:%s: %s%s", b.seen(at[1]), at[2], at[3], indented(lines[i+1:]))
		}
	}
	if first == "" {
		return refuse("%s does not compile: %s", b.arg, firstLine(stderr, err))
	}
	if more > 0 {
		first += fmt.Sprintf(" (and %d more)", more)
	}
	return refuse("%s does not compile: %s", b.arg, text.Line(first))
}

// indented joins the lines that continue a message.
func indented(lines []string) string {
	var out strings.Builder
	for _, line := range lines {
		if !strings.HasPrefix(line, "\t") {
			break
		}
		out.WriteString(" " + strings.TrimSpace(line))
	}
	return out.String()
}

// seen returns a path printed by the go command as seen from the working directory.
func (b *builder) seen(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.dir, path)
	}
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(here, abs); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return abs
}

// firstLine returns the go command's message without its prefix, on one line, or err
// if it printed nothing.
func firstLine(stderr string, err error) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "go: downloading") || strings.TrimSpace(line) == "" {
			continue
		}
		return text.Line(strings.TrimPrefix(line, "go: ") + indented(lines[i+1:]))
	}
	return fmt.Sprint(err)
}
