package cli

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/cli/internal/publish"
	"github.com/stonelayer/stone/cli/internal/token"
)

// inspectFlags holds the values of inspect's flags.
type inspectFlags struct {
	address string
	answer  bool
}

func (a *app) inspect(c *cobra.Command) {
	var flags inspectFlags
	a.overStore(c, func(ctx context.Context, s *store, args []string) error {
		at := ""
		if len(args) > 0 {
			info, err := s.find(ctx, args[0])
			if err != nil {
				return err
			}
			at = info.ID
		}
		host, _, err := net.SplitHostPort(flags.address)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("--address %q: want HOST:PORT of this machine, such as 127.0.0.1:8080; to show runs to others, use serve, which checks tokens", flags.address)
		}
		listener, err := listen(flags.address)
		if err != nil {
			return failed("%w", err)
		}
		page, first := "/", token.Secret()
		if at != "" {
			page = "/runs/" + url.PathEscape(at)
		}
		warn := func(line string) { a.complain("%s", line) }
		ctx, drain, stop := drainable(ctx, func(string) {}, "") // no work that could be lost is running
		defer stop()
		err = a.linked.server.Serve(ctx, publish.Config{
			Ready:    func() { a.complain("showing http://%s%s", listener.Addr(), signIn(page, first)) },
			Listener: listener, First: first, Journal: s.Store, Inspect: true, Answer: flags.answer, By: user(), Grace: time.Second, Drain: drain, Warn: warn,
		})
		if err != nil {
			return failed("%w", err)
		}
		return nil
	})
	f := c.Flags()
	f.StringVar(&flags.address, "address", "127.0.0.1:0", "listen on `HOST:PORT` of this machine; port 0 selects a free port")
	f.BoolVar(&flags.answer, "answer", false, "allow answers to questions")
}
