package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/llm"
)

// configured is a server that the configuration describes. Its tools are used as capabilities.
type configured struct {
	name        string
	at          string
	cfg         Config // the configuration without secrets
	env, header map[string]kinds.Value
	secrets     []kinds.Secret
	client      kinds.Secret // the client secret for cfg.OAuth
	server      *OnDemand
}

// Part adds the kind mcp, and servers described in a configuration, to a program.
var Part = kinds.Kind{Name: "mcp", Read: readKind, Section: "servers", ReadSection: readServers}

// servers returns the servers that r has read.
func servers(r *kinds.Reader) map[string]*configured {
	all, _ := r.Parts["servers"].(map[string]*configured)
	return all
}

func readServers(r *kinds.Reader, m *form.Map) {
	all := map[string]*configured{}
	r.Parts["servers"] = all
	m.At("servers").Entries(func(name string, v form.Value) {
		s := &configured{name: name, cfg: Config{Name: name}}
		good := false
		s.secrets = r.Of("server "+name, func() { good = v.Map(func(m *form.Map) { readServer(r, m, s) }) })
		if s.server == nil { // the section is not a map
			s.server = NewOnDemand(s.cfg, call.Scope{})
		}
		s.server.open = s.open
		if err := s.server.Check(); good && err != nil {
			v.Fault(form.Invalid, "%v", err)
		}
		all[name] = s
		r.Closers = append(r.Closers, s.server.Close)
	})
}

func readServer(r *kinds.Reader, m *form.Map, s *configured) {
	var url string
	_, isCommand := m.Field("command")
	if _, isURL := m.Field("url"); isCommand == isURL {
		m.Fault(form.Invalid, "expected one of command and url")
	}
	if isCommand {
		r.Path(m, "dir", &s.cfg.Dir)
		s.cfg.Command = r.Argv(m, s.cfg.Dir)
		s.env = r.Values(m, "env")
		s.cfg.Sandbox = r.Sandbox(m)
	} else {
		r.Address(m, "url", &url)
		s.cfg.URL = llm.Secret(url)
		s.header = r.Values(m, "headers")
		readOAuth(r, m, s)
	}
	if s.at = url; len(s.cfg.Command) > 0 {
		s.at = s.cfg.Command[0]
	}
	m.At("protocol").OneOf(&s.cfg.Protocol, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
	m.At("timeout-ms").Duration(&s.cfg.Timeout)
	m.At("start-timeout-ms").Duration(&s.cfg.StartTimeout)
	m.At("idle-ms").Duration(&s.cfg.Idle)
	s.cfg.Accept = pins(r.Dir, s.name)
	s.server = NewOnDemand(s.cfg, r.Scope(m))
}

// readOAuth reads the settings of a login.
func readOAuth(r *kinds.Reader, m *form.Map, s *configured) {
	m.At("oauth").Map(func(m *form.Map) {
		o := &OAuth{Hint: "run: stone login " + quoted(s.name)}
		m.At("client").Text(&o.Client)
		s.client = r.Secret(m, "secret")
		m.At("scopes").Texts(&o.Scopes)
		if s.client != (kinds.Secret{}) && o.Client == "" {
			m.Fault(form.Invalid, "a secret needs a client: add the client's id")
		}
		o.Load, o.Save = tokens(r.Dir, s.name)
		s.cfg.OAuth = o
		r.Logins[s.name] = s.login
	})
}

// login logs the user in to the server.
func (s *configured) login(ctx context.Context, show func(string) error) error {
	cfg, err := s.open(s.server.cfg)
	if err != nil {
		return err
	}
	return Login(ctx, cfg, show)
}

// open returns the server's configuration with the current values of its secrets.
func (s *configured) open(cfg Config) (_ Config, err error) {
	if cfg.Env, err = kinds.Open(s.env); err == nil {
		cfg.Header, err = kinds.Open(s.header)
	}
	if err == nil && s.client != (kinds.Secret{}) {
		o := *cfg.OAuth
		o.Secret, err = s.client.Read()
		cfg.OAuth = &o
	}
	if err != nil {
		err = fmt.Errorf("the server %s: %w", s.name, err)
	}
	return cfg, err
}

func readKind(r *kinds.Reader, m *form.Map, at *kinds.Reached) kinds.Builder {
	var name, tool string
	var s *configured
	m.Need("server", "tool")
	if v := m.At("server"); v.Name(&name) {
		kinds.CheckEach(v, "server", slices.Sorted(maps.Keys(servers(r))))
		if s = servers(r)[name]; s != nil {
			at.At, at.Command, at.Server = s.at, s.cfg.Command, name
			r.Secrets = append(r.Secrets, s.secrets...)
		}
	}
	kinds.SomeText(m, "tool", &tool)
	return func(meta call.Metadata) (call.Capability, error) {
		return s.server.Capability(meta, tool), nil
	}
}
