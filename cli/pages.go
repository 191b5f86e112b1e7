package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/cli/internal/publish"
	"github.com/stonelayer/stone/cli/internal/token"
)

// inspectFlags are the flags of inspect.
type inspectFlags struct {
	address string
	html    string
	answer  bool
}

func (a *app) inspect() *cobra.Command {
	var flags inspectFlags
	c := &cobra.Command{
		Use:   "inspect [RUN] [flags]",
		Short: "Show runs in a browser",
		Long: "Inspect serves pages about the runs of a database: their state, failures, steps, contents and questions.\n" +
			"It starts no run and changes nothing; --answer also records answers, and resume then continues the run.\n" +
			"The address that it prints has a token, which a browser keeps for the session. Pages of running runs are\n" +
			"live. With --html it writes one run to a file that needs no server.",
		Example:               a.example("inspect", "inspect last --html run.html"),
		Args:                  cobra.MaximumNArgs(1),
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			return a.withStore(c.Context(), func(s *store) error { return a.inspectStore(c.Context(), s, args, flags) })
		},
	}
	f := c.Flags()
	a.dbFlag(f)
	f.StringVar(&flags.address, "address", "127.0.0.1:0", "listen on `HOST:PORT`, of this machine alone; port 0 is a free one")
	f.StringVar(&flags.html, "html", "", "write the run to `FILE`, for a browser without a server")
	noted(f, namesFile, "html")
	f.BoolVar(&flags.answer, "answer", false, "allow answers to questions")
	return c
}

func (a *app) inspectStore(ctx context.Context, s *store, args []string, flags inspectFlags) error {
	at := ""
	if len(args) > 0 {
		info, err := s.find(ctx, args[0])
		if err != nil {
			return err
		}
		at = info.ID
	}
	if flags.html != "" {
		if at == "" {
			return errors.New("--html writes one run: name a RUN, as in \"inspect last --html run.html\"")
		}
		f, err := os.Create(flags.html)
		if err != nil {
			return err
		}
		if err := errors.Join(a.linked.server.HTML(ctx, f, s.Store, at), f.Close()); err != nil {
			return failed("%s: %w", flags.html, err)
		}
		return nil
	}
	host, _, err := net.SplitHostPort(flags.address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--address %q: want HOST:PORT of this machine, as 127.0.0.1:8080: serve shows runs to others, with tokens", flags.address)
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
	ctx, drain, stop := drainable(ctx, func(string) {}, "") // nothing runs that could be lost
	defer stop()
	err = a.linked.server.Serve(ctx, publish.Config{
		Ready:    func() { a.complain("showing http://%s%s", listener.Addr(), signIn(page, first)) },
		Listener: listener, First: first, Journal: s.Store, Inspect: true, Answer: flags.answer, By: user(), Grace: time.Second, Drain: drain, Warn: warn,
	})
	if err != nil {
		return failed("%w", err)
	}
	return nil
}
