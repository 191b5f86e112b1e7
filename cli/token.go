package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/cli/internal/token"
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
	f.StringSliceVar(&t.Roles, "role", nil, "what the caller may do: some of `ROLES` read, start, force, grant, answer, act, scrape")
	f.StringVar(&t.Tenant, "tenant", "", "the caller sees only runs of this `TENANT`")
	f.Var(&grant, "grant", "runs of the caller have at most this `EFFECT`")
	f.Var(most(&t.Limits.USD), "max-usd", "each run spends at most `USD` dollars")
	f.Var(most(&t.USDADay), "max-usd-a-day", "all runs and requests of a day (UTC) together spend at most `USD` dollars")
	f.Var(most(&t.Limits.Tokens), "max-tokens", "each run spends at most `N` tokens")
	f.Var(most(&t.Minute), "per-minute", "at most `N` requests a minute")
	f.Var(most(&t.Runs), "runs", "at most `N` runs at once")
	f.Var(count(&t.Streams), "streams", "at most `N` streams, watched lists and waits at once; 100 by default")
	f.BoolVar(&t.Interactive, "interactive", false, "its runs that say that a person waits go before others")
	f.Var(&quantity[time.Duration]{&ttl, time.Second}, "ttl", "the token expires after this time, such as `720h`")
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
