package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/cli/internal/token"
	"github.com/stonelayer/stone/internal/text"
)

// token is the command about the tokens of the server.
func (a *app) token() *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Manage the tokens of a server",
		Long: "Token manages who may use a server: see serve. The file of tokens has only their digests. A running\n" +
			"server applies changes within a second.",
		Args: unknown,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.createToken(), a.listTokens(), a.revokeToken())
	return c
}

func (a *app) createToken() *cobra.Command {
	var t token.Token
	var grant effects
	var ttl *time.Duration
	c := &cobra.Command{
		Use:   "create NAME [flags]",
		Short: "Make a token and print it, once",
		Long: "Create makes a token for a caller of the server and prints it. It is kept nowhere: if it is lost, make\n" +
			"another one. The roles are read (see pipelines, runs and questions), start (start, cancel, resume and\n" +
			"remove runs), force (with start: resume runs although their pipeline changed), grant (with start: narrow the\n" +
			"grant of a run), answer (answer questions), act (ask capabilities) and scrape (read /metrics). A caller\n" +
			"with a tenant sees only what that tenant has started.",
		Example:               a.example("token create ci --role read,start --tenant acme --max-usd 1 --ttl 720h"),
		DisableFlagsInUseLine: true,
		Args:                  oneName,
		RunE: func(c *cobra.Command, args []string) error {
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
		},
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
	return c
}

func oneName(c *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return fmt.Errorf("NAME is missing: see %s --help", c.CommandPath())
	}
	return fmt.Errorf("unexpected argument %q: %s takes one NAME", args[1], c.CommandPath())
}

func (a *app) listTokens() *cobra.Command {
	c := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the tokens",
		Args:  none,
		RunE: func(*cobra.Command, []string) error {
			tokens, err := a.openTokens()
			if err != nil {
				return err
			}
			all, err := tokens.List()
			if err != nil {
				return err
			}
			return output(a.printTokens(all))
		},
		DisableFlagsInUseLine: true,
	}
	a.tokensFlag(c.Flags())
	return c
}

func (a *app) printTokens(all []token.Token) error {
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
			return err
		}
	}
	return nil
}

func (a *app) revokeToken() *cobra.Command {
	c := &cobra.Command{
		Use:                   "revoke NAME [flags]",
		Short:                 "Make a token invalid",
		DisableFlagsInUseLine: true,
		Args:                  oneName,
		RunE: func(_ *cobra.Command, args []string) error {
			tokens, err := a.openTokens()
			if err != nil {
				return err
			}
			return tokens.Revoke(args[0])
		},
	}
	a.tokensFlag(c.Flags())
	return c
}
