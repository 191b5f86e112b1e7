package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/trust"
)

func (a *app) trust(c *cobra.Command) {
	var list, remove bool
	var tools string
	c.PreRunE = func(_ *cobra.Command, args []string) error {
		switch {
		case list && (remove || tools != "" || len(args) > 0):
			return errors.New("--list lists all projects: leave out the rest")
		case remove && tools != "":
			return errors.New("--remove and --tools cannot be combined: use one")
		}
		return nil
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		dir := cmp.Or(strings.Join(args, ""), ".")
		switch {
		case list:
			s, err := trust.Open()
			if err != nil {
				return err
			}
			all, err := s.All()
			if err != nil {
				return failed("%w", err)
			}
			for _, dir := range all {
				if _, err := fmt.Fprintln(a.Stdout, text.Line(dir)); err != nil {
					return output(err)
				}
			}
			return nil
		case remove:
			if of, err := config.Find(dir); err == nil && of != "" {
				dir = filepath.Dir(of)
			}
			s, err := trust.Open()
			if err != nil {
				return err
			}
			was, err := s.Remove(dir)
			switch {
			case err != nil:
				return failed("%w", err)
			case !was:
				return fmt.Errorf("%s was not trusted: list the trusted directories with --list", dir)
			}
			return nil
		case tools != "":
			return a.acceptTools(dir, tools)
		}
		return a.addTrust(dir)
	}
	c.Flags().BoolVar(&list, "list", false, "list the projects that are trusted")
	c.Flags().StringVar(&tools, "tools", "", "accept the current tool definitions of the MCP `SERVER`, after a run has refused a change")
	c.Flags().BoolVar(&remove, "remove", false, "stop trusting the project")
}

// quotedAll returns a command line whose words are quoted for use in a shell.
func quotedAll(words ...string) string {
	for i, w := range words {
		words[i] = quoted(w)
	}
	return strings.Join(words, " ")
}

// acceptTools accepts a server's tool definitions that a run has refused.
func (a *app) acceptTools(dir, server string) error {
	s, err := trust.Open()
	if err != nil {
		return err
	}
	of := dir
	if found, err := config.Find(dir); err == nil && found != "" {
		if known, err := s.Tools(dir, server); err == nil && len(known.Refused) == 0 {
			of = found
		}
	}
	accepted, err := s.AcceptRefused(of, server)
	switch {
	case err != nil:
		return failed("%w", err)
	case len(accepted) == 0:
		return fmt.Errorf("the server %q in %s has no new tool definition to accept", server, of)
	}
	for _, name := range slices.Sorted(maps.Keys(accepted)) {
		a.complain("accepted %s: %s", text.Line(name), text.Line(accepted[name].Changes))
		var whole bytes.Buffer
		if err := json.Compact(&whole, accepted[name].Definition); err == nil { // only a part of a long change is shown
			a.complain("the whole definition: %s", text.Line(whole.String()))
		}
	}
	return nil
}

func (a *app) addTrust(dir string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() { // otherwise a project around it would be trusted
		return fmt.Errorf("folder %s does not exist", dir)
	}
	of, err := config.Find(dir)
	if err != nil {
		return err
	}
	if of == "" {
		return fmt.Errorf("there is no .stone in %s or above it, so there is nothing to trust", dir)
	}
	settings, err := config.Read(of)
	if err != nil {
		return err
	}
	f, err := a.foundProject(of, settings.Pipeline)
	for _, name := range []string{runsFile, tokensFile} {
		if err == nil {
			err = f.stateIn(filepath.Join(of, name))
		}
	}
	if err != nil {
		return err
	}
	if len(f.wants) == 0 {
		a.complain("%s starts no programs and sends no requests: it needs no trust", of)
		return nil
	}
	if err := f.trust(); err != nil {
		return err
	}
	a.complain("%s is trusted:", of)
	f.print(a.Stderr)
	return nil
}
