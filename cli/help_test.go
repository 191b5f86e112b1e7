package cli

import (
	"maps"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/cli/internal/publish"
	"github.com/stonelayer/stone/internal/inside"
	"github.com/stonelayer/stone/internal/library"
	"github.com/stonelayer/stone/internal/text"
	evals "github.com/stonelayer/stone/x/eval/commands"
	"github.com/stonelayer/stone/x/kpi"
)

func TestFit(t *testing.T) {
	help := "Runs lists the runs of a database, newest first. It\nkeeps running runs that can continue:\nwaiting ones.\n\nUsage:\n  stone runs [flags]\n\nExamples:\n  stone runs --state waiting,failed --label owner=somebody\n\n" +
		"Flags:\n      --all     list all runs\n      --db F    use the database F, or on a server: postgres://USER@HOST/NAME\n  -h, --help    help\n      --a-very-long-flag SOMETHING   some words\n"
	want := "Runs lists the runs of a database,\nnewest first. It keeps running runs that\ncan continue: waiting ones.\n\nUsage:\n  stone runs [flags]\n\nExamples:\n  stone runs --state waiting,failed --label owner=somebody\n\n" +
		"Flags:\n      --all     list all runs\n      --db F    use the database F, or\n                on a server:\n                postgres://USER@HOST/NAM\n                E\n  -h, --help    help\n      --a-very-long-flag SOMETHING\n          some words\n"
	if got := fit(help, 40); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The table has every command, with a group, a short line and, if it does something, a constructor.
func TestCommandTable(t *testing.T) {
	a := newApp(Config{Name: "stone", Pipeline: FromArgument})
	a.linked.library, a.linked.server, a.linked.commands = new(library.Library), new(publish.Server), maps.Clone(evals.Part)
	maps.Copy(a.linked.commands, kpi.Part)
	a.linked.protocols = []publish.Protocol{inside.Protocol{Command: "mcp"}, inside.Protocol{Command: "acp"}}
	root, has := a.root(), a.constructors()
	for _, e := range entries() {
		if _, ok := has[e.path]; !ok || e.short == "" {
			t.Errorf("%s: %+v", e.path, e)
		}
		delete(has, e.path)
		c, rest, err := root.Find(strings.Fields(e.path))
		if err != nil || len(rest) > 0 || c.RunE == nil || c.Parent() == root && c.GroupID != e.group {
			t.Errorf("%s: %v, %q, group %q", e.path, err, rest, c.GroupID)
		}
	}
	for path := range has {
		t.Errorf("the table lacks %s", path)
	}
}

// Of RUN [QUESTION TEXT] the first is needed, and so on.
func TestFits(t *testing.T) {
	c := &cobra.Command{Use: "x [flags]", DisableFlagsInUseLine: true}
	for _, tt := range []struct{ words, args, want string }{
		{"", "", ""}, {"", "a", "unexpected argument \"a\": x takes none"},
		{"RUN [QUESTION TEXT]", "", "RUN is missing: want x [flags]"}, {"RUN [QUESTION TEXT]", "a", ""}, {"RUN [QUESTION TEXT]", "a b c", ""},
		{"RUN [QUESTION TEXT]", "a b c d", "unexpected argument \"d\": want x [flags], and text with spaces in quotes"},
		{"RUN RUN", "a", "RUN is missing: want x [flags]"}, {"QUESTION…", "", "QUESTION is missing: want x [flags]"}, {"QUESTION…", "a b c d", ""},
	} {
		got := ""
		if err := fits(strings.Fields(tt.words))(c, strings.Fields(tt.args)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s with %q: %q, want %q", tt.words, tt.args, got, tt.want)
		}
	}
}

// The help of no command is wider than 80 columns, but for examples.
func TestHelpWidth(t *testing.T) {
	root, err := Command(Config{Name: "stone"})
	if err != nil {
		t.Fatal(err)
	}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		var help strings.Builder
		c.SetOut(&help)
		if err := c.Help(); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(fit(help.String(), 80)) {
			if text.Width(strings.TrimRight(line, "\n")) > 80 && !strings.HasPrefix(line, "  stone ") {
				t.Errorf("%s: %s", c.CommandPath(), line)
			}
		}
		for _, below := range c.Commands() {
			check(below)
		}
	}
	check(root)
}
