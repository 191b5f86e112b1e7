package cli

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/text"
)

// fitHelp makes the help of all commands fit into a terminal. Other readers get it unbroken.
func (a *app) fitHelp(root *cobra.Command) {
	write := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		width := a.columns()
		if width == 0 {
			write(c, args)
			return
		}
		var help bytes.Buffer
		c.SetOut(&help)
		write(c, args)
		c.SetOut(a.Stdout)
		_, _ = io.WriteString(a.Stdout, fit(help.String(), min(width, 100)))
	})
}

// described matches what a line of a list describes, and the spaces after it.
var described = regexp.MustCompile(`^ +\S+( \S+)* {2,}`)

// fit breaks the long lines of a help text. What a list says of a flag or a command continues below its start. The lines of a
// paragraph are joined before, and those of examples stay as they are.
func fit(help string, width int) string {
	var out []string
	paragraph := ""
	end := func() {
		if paragraph != "" {
			out, paragraph = append(out, text.Fold(paragraph, width)...), ""
		}
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(help, "\n"), "\n") {
		if strings.TrimSpace(line) != "" && line[0] != ' ' && line[0] != '\t' {
			paragraph = strings.TrimSpace(paragraph + " " + line)
			continue
		}
		end()
		name := described.FindString(line)
		if name == "" || text.Width(line) <= width {
			out = append(out, line)
			continue
		}
		about := line[len(name):]
		if len(name) > width/2 { // it begins below
			out, name = append(out, strings.TrimRight(name, " ")), strings.Repeat(" ", 10)
		}
		for _, piece := range text.Fold(about, width-len(name)) {
			out, name = append(out, name+piece), strings.Repeat(" ", len(name))
		}
	}
	end()
	return strings.Join(out, "\n") + "\n"
}

// meant returns the commands below c that a word probably means.
func meant(c *cobra.Command, word string) (names []string) {
	for _, below := range c.Commands() {
		if !below.IsAvailableCommand() {
			continue
		}
		for _, other := range below.SuggestFor {
			if strings.EqualFold(other, word) {
				return []string{below.Name()}
			}
		}
		names = append(names, below.Name())
	}
	if near := suggest.Closest(word, slices.Values(names)); near != "" {
		return []string{near}
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, strings.ToLower(word)) })
}
