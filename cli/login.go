package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/text"
)

// loginTime bounds the time that a user has to log in.
const loginTime = 10 * time.Minute

func (a *app) login() *cobra.Command {
	c := &cobra.Command{
		Use:   "login SERVER [flags]",
		Short: "Log in to an MCP server of the configuration",
		Long: "Login prints the address at which you log in to the server, which has :oauth in the configuration, and\n" +
			"waits up to 10 minutes for the browser to come back to a port of this machine. The tokens are kept in\n" +
			"the user's configuration directory, readable by the user alone, and are renewed by the runs that use them.",
		Example: a.example("login tickets", "login tickets --config stone.edn"),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want the name of one server, got %d: see :servers in the configuration", len(args))
			}
			return nil
		},
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			conf, err := a.configured()
			if err != nil {
				return err
			}
			defer a.closeCalls()
			login, ok := conf.Logins[args[0]]
			if !ok {
				return noLogin(args[0], slices.Sorted(maps.Keys(conf.Logins)))
			}
			if err := a.consentToConfig(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), loginTime)
			defer cancel()
			err = login(ctx, func(address string) error {
				a.complain("open this address in a browser on this machine: %s", text.Line(address))
				return nil
			})
			if err != nil {
				return failed("%w", err)
			}
			a.complain("logged in to %s", text.Line(args[0]))
			return nil
		},
	}
	a.configFlag(c.Flags())
	a.trustFlag(c.Flags())
	return c
}

func noLogin(name string, known []string) error {
	switch near := suggest.Closest(name, slices.Values(known)); {
	case len(known) == 0:
		return fmt.Errorf("the configuration has no server with :oauth, so there is no login for %q", name)
	case near != "":
		return fmt.Errorf("the configuration has no server %q with :oauth: did you mean %q?", name, near)
	}
	return fmt.Errorf("the configuration has no server %q with :oauth: it has %s", name, strings.Join(known, ", "))
}
