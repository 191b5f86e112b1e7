package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/text"
)

// loginTime bounds the time that a user has to log in.
const loginTime = 10 * time.Minute

func (a *app) login(c *cobra.Command) {
	a.overConfig(c, func(ctx context.Context, conf *config.Config, args []string) error {
		login, ok := conf.Logins[args[0]]
		if known := slices.Sorted(maps.Keys(conf.Logins)); !ok && len(known) == 0 {
			return fmt.Errorf("the configuration has no server with :oauth, so there is no login for %q", args[0])
		} else if near := suggest.Closest(args[0], slices.Values(known)); !ok && near != "" {
			return fmt.Errorf("the configuration has no server %q with :oauth: did you mean %q?", args[0], near)
		} else if !ok {
			return fmt.Errorf("the configuration has no server %q with :oauth: it has %s", args[0], strings.Join(known, ", "))
		}
		if err := a.consentToConfig(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, loginTime)
		defer cancel()
		err := login(ctx, func(address string) error {
			a.complain("open this address in a browser on this machine: %s", text.Line(address))
			return nil
		})
		if err != nil {
			return failed("%w", err)
		}
		a.complain("logged in to %s", text.Line(args[0]))
		return nil
	})
	a.trustFlag(c.Flags())
}
