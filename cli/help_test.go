package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/internal/text"
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
