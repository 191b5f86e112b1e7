package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
)

const (
	maxResult = 8 << 20 // maximum size of a result's text and, by default, of its data, in bytes
)

// OnDemand is a server whose tools are used as capabilities. The connection is opened when a tool is first used, and closed after
// a minute without calls; a command is started and stopped in the same way. The next call opens the connection again, even if the
// server has died. The methods may be called from several goroutines.
type OnDemand struct {
	cfg   Config
	open  func(Config) (Config, error) // adds the secrets for a connection; nil means that there are none
	scope call.Scope

	turn   chan struct{} // a lock for the fields below
	conn   *Server
	tools  map[string]*agent.Tool
	closed bool

	ctx    context.Context // is cancelled by Close
	cancel context.CancelFunc
	once   sync.Once
}

// NewOnDemand returns a server for capabilities, restricted by the scope s. If the server is a command, its program must be in
// s.Process, and s.FS and s.Net must be nil, because cfg.Sandbox grants the command's access. If it is a URL, the URL and the
// targets of redirects must be in s.Net.
func NewOnDemand(cfg Config, s call.Scope) *OnDemand {
	cfg.Idle = cmp.Or(cfg.Idle, defaultIdle)
	cfg.MaxData = cmp.Or(cfg.MaxData, maxResult)
	if cfg.URL != "" && s.Net != nil {
		cfg.Client = held(cfg.Client, s.Net)
	}
	server := &OnDemand{cfg: cfg, scope: s, turn: make(chan struct{}, 1), tools: map[string]*agent.Tool{}}
	server.ctx, server.cancel = context.WithCancel(context.Background())
	return server
}

// held returns a copy of the client that follows redirects only to servers in scope.
func held(base *http.Client, net call.Net) *http.Client {
	client := &http.Client{}
	if base != nil {
		*client = *base
	}
	follow := client.CheckRedirect
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if err := net.Check(r.URL); err != nil {
			return err
		}
		if follow != nil {
			return follow(r, via)
		}
		if len(via) >= 10 {
			return errors.New("more than 10 redirects")
		}
		return nil
	}
	return client
}

// Check returns an error if the configuration is invalid. It starts nothing.
func (s *OnDemand) Check() error {
	if err := s.scope.Check(); err != nil {
		return err
	}
	switch {
	case len(s.cfg.Command) > 0:
		return s.scope.Unconfined("the program of an MCP server", s.cfg.Command[0])
	case s.cfg.URL != "":
		u, err := url.Parse(string(s.cfg.URL))
		if err != nil {
			return errors.New("mcp: URL is not a URL") // the error from url.Parse would show the URL
		}
		return s.scope.Net.Check(u)
	case s.cfg.Transport == nil:
		return errors.New("mcp: no server: set Command, URL or Transport")
	}
	return nil
}

// Close ends the connection and, for a command, all its processes. Later calls fail with ErrClosed. Close may be called more than
// once; the error is always nil.
func (s *OnDemand) Close() error {
	s.once.Do(func() {
		s.cancel()
		s.turn <- struct{}{}
		defer func() { <-s.turn }()
		if s.closed = true; s.conn != nil {
			s.conn.Close()
		}
	})
	return nil
}

// tool returns a tool of the server, connecting to the server if necessary.
func (s *OnDemand) tool(ctx context.Context, name string) (*agent.Tool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		if s.ctx.Err() != nil {
			return nil, ErrClosed
		}
		return nil, ctx.Err()
	}
	if s.closed {
		return nil, ErrClosed
	}
	if t := s.tools[name]; t != nil {
		return t, nil
	}
	if s.conn == nil {
		cfg, err := s.cfg, error(nil)
		if s.open != nil {
			cfg, err = s.open(cfg)
		}
		if err == nil {
			s.conn, err = Connect(ctx, cfg)
		}
		if err != nil {
			return nil, err
		}
	}
	found, err := s.conn.Tools(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 || found[0].Tool == nil {
		return nil, fmt.Errorf("mcp: the server has no tool %s", name)
	}
	s.tools[name] = found[0].Tool
	return found[0].Tool, found[0].Tool.Err
}
