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
	"github.com/stonelayer/stone/cli/internal/token"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/text"
)

func (a *app) createToken(c *cobra.Command) {
	var t token.Token
	var grant effects
	var ttl *time.Duration
	c.RunE = func(c *cobra.Command, args []string) error {
		now := time.Now()
		t.Name = args[0]
		if c.Flags().Changed("grant") {
			t.Grant = grant
		}
		if ttl != nil {
			t.Expires = now.Add(*ttl).UTC().Truncate(time.Second)
		}
		tokens, err := a.openTokens()
		if err != nil {
			return err
		}
		secret, err := tokens.Create(t, now)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.Stdout, secret)
		return output(err)
	}
	f := c.Flags()
	a.tokensFlag(f)
	f.StringSliceVar(&t.Roles, "role", nil, "give the caller these `ROLES`: read, start, force, grant, answer, act, scrape")
	f.StringVar(&t.Tenant, "tenant", "", "let the caller see only runs of this `TENANT`")
	f.Var(&grant, "grant", "limit the caller's runs to this `EFFECT`")
	f.Var(most(&t.Limits.USD), "max-usd", "limit each run to `USD` dollars")
	f.Var(most(&t.USDADay), "max-usd-a-day", "limit all runs and requests of a day (UTC) together to `USD` dollars")
	f.Var(most(&t.Limits.Tokens), "max-tokens", "limit each run to `N` tokens")
	f.Var(most(&t.Minute), "per-minute", "allow at most `N` requests a minute")
	f.Var(most(&t.Runs), "runs", "allow at most `N` runs at once")
	f.Var(count(&t.Streams), "streams", "allow at most `N` streams, watched lists and waits at once; 100 by default")
	f.BoolVar(&t.Interactive, "interactive", false, "serve the caller's runs for which a person is waiting before others")
	f.Var(&quantity[time.Duration]{&ttl, time.Second}, "ttl", "let the token expire after this time, such as `720h`")
}

func (a *app) listTokens(c *cobra.Command) {
	c.RunE = func(*cobra.Command, []string) error {
		tokens, err := a.openTokens()
		if err != nil {
			return err
		}
		all, err := tokens.List()
		if err != nil {
			return err
		}
		for _, t := range all {
			line := t.Name + "  " + strings.Join(t.Roles, ",")
			if t.Tenant != "" {
				line += "  tenant " + t.Tenant
			}
			if !t.Expires.IsZero() {
				line += "  until " + t.Expires.Local().Format(time.DateTime)
				if time.Now().After(t.Expires) {
					line += " (expired)"
				}
			}
			if _, err := fmt.Fprintln(a.Stdout, text.Line(line)); err != nil {
				return output(err)
			}
		}
		return nil
	}
	a.tokensFlag(c.Flags())
}

func (a *app) revokeToken(c *cobra.Command) {
	c.RunE = func(_ *cobra.Command, args []string) error {
		tokens, err := a.openTokens()
		if err != nil {
			return err
		}
		return tokens.Revoke(args[0])
	}
	a.tokensFlag(c.Flags())
}

// loginTime is the time limit for a user's login.
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
