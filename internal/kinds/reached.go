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

// Reached describes where a capability runs.
type Reached struct {
	ID      string
	At      string // the program, the address or the file; "" means this process
	Secrets []Secret
	Priced  string // the day of its price, if that comes from the price list
	Calls   bool   // it calls another capability, and is built after all capabilities that do not

	Package         string   // the Go package whose pipeline it is
	Command         []string // the program and its arguments; At is the program
	Provider, Model string   // of a language model
	Server          string   // whose tool it is
}

// Probe checks cheaply whether the capability can be available: its secrets exist, its
// program can be started, its server accepts connections. No request is sent.
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
