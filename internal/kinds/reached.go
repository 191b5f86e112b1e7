package kinds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
)

// A Reached describes where a capability runs and what it needs there.
type Reached struct {
	ID      string
	At      string // program, address or file; "" means this process
	Secrets []Secret
	Priced  string // day of the price, if it comes from the price list
	Calls   bool   // whether the capability calls another capability, so that it is built after those that call none

	Package         string   // Go package, for a capability that is a pipeline of the package
	Command         []string // program and arguments, for a command; At is the program
	Provider, Model string   // for a language model
	Server          string   // server, for a capability that is a tool of the server
}

// Probe returns an error if the capability cannot be available: its secrets must exist, its program must be startable, and its
// server must accept connections. It is quick and does not send a request.
func (a Reached) Probe(ctx context.Context) error {
	for _, s := range a.Secrets {
		if _, err := s.Read(); err != nil {
			return err
		}
	}
	if len(a.Command) > 0 {
		return startable(a.At)
	}
	if u, err := url.Parse(a.At); err == nil && u.Host != "" {
		return listening(ctx, u)
	}
	return nil
}

func startable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("no program %s", path)
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}

func listening(ctx context.Context, u *url.URL) error {
	port := u.Port()
	switch {
	case port != "":
	case strings.HasPrefix(u.Scheme, "postgres"):
		port = "5432"
	default:
		port = u.Scheme
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return fmt.Errorf("no connection to %s: %w", u.Host, err)
	}
	return conn.Close()
}
