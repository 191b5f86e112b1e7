package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/text"
)

// fitHelp wraps the help of all commands at the width of the terminal. If the output is not a terminal, lines are not wrapped.
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

// described matches the term at the start of a line in a list, and the spaces after the term.
var described = regexp.MustCompile(`^ +\S+( \S+)* {2,}`)

// fit wraps the long lines of a help text. The lines of a paragraph are joined first, and descriptions in a list are indented
// below their start; examples keep their lines.
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
		if len(name) > width/2 { // the description begins on the next line
			out, name = append(out, strings.TrimRight(name, " ")), strings.Repeat(" ", 10)
		}
		for _, piece := range text.Fold(about, width-len(name)) {
			out, name = append(out, name+piece), strings.Repeat(" ", len(name))
		}
	}
	end()
	return strings.Join(out, "\n") + "\n"
}

// meant returns the names of the sub-commands of c that the user probably meant by a mistyped word.
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

// flagError returns the error for an invalid flag. If the flag is unknown, the error suggests a similar flag. If it suggests
// none, it refers to --help, followed by the hint.
func flagError(c *cobra.Command, err error, hint string) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && slices.Contains([]string{"model", "provider", "url"}, unknown.GetSpecifiedName()):
		name := unknown.GetSpecifiedName()
		return fmt.Errorf("%w: set STONE_%s, or %q in .stone/settings.json", err, strings.ToUpper(name), name)
	case errors.As(err, &unknown):
		meant := suggest.Closest(unknown.GetSpecifiedName(), func(yield func(string) bool) {
			more := true
			c.Flags().VisitAll(func(f *pflag.Flag) { more = more && (f.Hidden || yield(f.Name)) })
		})
		if meant != "" && unknown.GetSpecifiedShortnames() == "" {
			return fmt.Errorf("%w: did you mean --%s?", err, meant)
		}
		return fmt.Errorf("%w: see %s --help%s", err, c.CommandPath(), hint)
	case errors.As(err, &invalid) && errors.As(err, new(outOfRange)):
		return fmt.Errorf("--%s %s: %w", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
	case errors.As(err, &invalid) && errors.As(err, new(*strconv.NumError)):
		want := "a number"
		if invalid.GetFlag().Value.Type() == "bool" {
			want = "true or false"
		} else if invalid.GetFlag().Value.Type() != "float64" {
			want = "a whole number"
		}
		err = fmt.Errorf("--%s %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
	case invalid != nil && invalid.GetFlag().Value.Type() != "duration":
		err = fmt.Errorf("--%s %s: %w", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
	}
	if invalid != nil && invalid.GetFlag().Value.Type() == "duration" {
		err = fmt.Errorf("--%s %q: want a duration with a unit, such as 10s, 5m or 1h30m%s", invalid.GetFlag().Name, invalid.GetValue(), meantTime(invalid.GetValue(), "s"))
	}
	if strings.HasSuffix(err.Error(), "?") { // the error already has a suggestion
		return err
	}
	return fmt.Errorf("%w: see %s --help", err, c.CommandPath())
}

// listen returns a listener on the address given by the --address flag.
func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--address %s is in use: choose another, or stop the program that listens on it", address)
	}
	if err != nil {
		return nil, fmt.Errorf("--address %s: %w: want HOST:PORT, such as 127.0.0.1:8080", address, err)
	}
	return l, nil
}
