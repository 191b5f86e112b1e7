package config

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/mcp"
	"github.com/stonelayer/stone/call/scope"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/llm"
)

// A server is one that speaks the Model Context Protocol, for the capabilities that
// are its tools.
type server struct {
	name        string
	at          string
	cfg         mcp.Config // without secrets
	env, header map[string]value
	secrets     []Secret
	scope       scope.Scope

	mu      sync.Mutex
	running *mcp.Server // with the secrets; nil before it is used
	closed  bool
}

// A value is one of a variable or a header: in plain text, or a secret.
type value struct {
	text   string
	secret Secret
}

func (r *reader) readServers(m *form.Map) {
	m.Entries("servers", func(name string, v form.Value) {
		r.secrets = nil
		s := &server{name: name, cfg: mcp.Config{Name: name}}
		good := v.Map(func(m *form.Map) { r.server(m, s) })
		s.secrets = r.secrets
		if err := mcp.NewServer(s.cfg, s.scope).Check(); good && err != nil {
			v.Fault(form.Invalid, "%v", err)
		}
		r.servers[name] = s
		r.closers = append(r.closers, s.close)
	})
}

func (r *reader) server(m *form.Map, s *server) {
	var url string
	_, isCommand := m.Field("command")
	if _, isURL := m.Field("url"); isCommand == isURL {
		m.Fault(form.Invalid, "expected one of command and url")
	}
	if isCommand {
		s.cfg.Command = r.argv(m)
		r.path(m, "dir", &s.cfg.Dir)
		s.env = r.values(m, "env")
	} else {
		address(m, "url", &url)
		s.cfg.URL = llm.Secret(url)
		s.header = r.values(m, "headers")
	}
	if s.at = url; len(s.cfg.Command) > 0 {
		s.at = s.cfg.Command[0]
	}
	m.Duration("timeout-ms", &s.cfg.Timeout)
	m.Duration("start-timeout-ms", &s.cfg.StartTimeout)
	m.Duration("idle-ms", &s.cfg.Idle)
	s.scope = r.scope(m)
}

// values reads a field as values by their names. One whose name looks like that of a
// secret must not be plain text.
func (r *reader) values(m *form.Map, key string) map[string]value {
	all := map[string]value{}
	m.Entries(key, func(name string, v form.Value) {
		var one value
		if v.EDN().Kind() == edn.KindString && !secretive(name) {
			v.Text(&one.text)
		} else {
			one.secret = r.secretValue(v)
		}
		all[name] = one
	})
	return all
}

// get returns the server with its secrets.
func (s *server) get() (*mcp.Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, mcp.ErrClosed
	}
	if s.running != nil {
		return s.running, nil
	}
	cfg := s.cfg
	var err error
	if cfg.Env, err = open(s.env); err == nil {
		cfg.Header, err = open(s.header)
	}
	if err != nil {
		return nil, fmt.Errorf("the server %s: %w", s.name, err)
	}
	s.running = mcp.NewServer(cfg, s.scope)
	return s.running, nil
}

// open reads the secrets among values.
func open(values map[string]value) (map[string]llm.Secret, error) {
	out := make(map[string]llm.Secret, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		out[name] = llm.Secret(v.text)
		if v.secret != (Secret{}) {
			var err error
			if out[name], err = v.secret.Read(); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return out, nil
}

func (s *server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.running == nil {
		return nil
	}
	return s.running.Close()
}

func (r *reader) mcp(m *form.Map, at *Reached) builder {
	var name, tool string
	var s *server
	m.Need("server", "tool")
	if v, ok := m.Field("server"); ok && v.Name(&name) {
		r.checkEach(v, "server", slices.Sorted(maps.Keys(r.servers)))
		if s = r.servers[name]; s != nil {
			at.At, at.program = s.at, len(s.cfg.Command) > 0
			r.secrets = append(r.secrets, s.secrets...)
		}
	}
	someText(m, "tool", &tool)
	return func(meta call.Metadata) (call.Capability, error) {
		c := mcp.New(meta, mcp.ToolConfig{Server: mcp.NewServer(s.cfg, s.scope), Tool: tool})
		c.Invoke = func(ctx context.Context, req *call.Request) (*call.Reply, error) {
			running, err := s.get()
			if err != nil {
				return nil, &call.Error{Type: call.Unavailable, Message: err.Error(), Cause: err}
			}
			return mcp.New(meta, mcp.ToolConfig{Server: running, Tool: tool}).Invoke(ctx, req)
		}
		return c, nil
	}
}
