package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/tool"
)

const (
	// maxTools is the maximum number of tools that a server may list.
	maxTools = 1000
	// maxListed is the maximum size of a list of tools (names, descriptions and schemas), in bytes.
	maxListed = 8 << 20
	// maxDescription is the maximum length of a description that a model reads, in bytes.
	maxDescription = 16 << 10
)

// Tools returns tools of a server that is started only when it is needed. Use it where a pipeline is made and no error can be
// returned. Tools starts the server and reads its list of tools; the server is stopped when it has been idle. If there is an
// error, Tools returns a single tool that has the error as its Err, which Validate reports.
func Tools(cfg Config, names ...string) []agent.Middleware {
	cfg, err := cfg.complete()
	cfg.Idle = cmp.Or(cfg.Idle, defaultIdle)
	if err == nil {
		var tools []agent.Middleware
		s := newServer(cfg)
		if tools, err = s.Tools(context.Background(), names...); err == nil {
			return tools
		}
		s.Close()
	}
	return []agent.Middleware{agent.Use(agent.Tool{
		Tool: llm.Tool{Name: plainName("mcp_" + cfg.Name), Schema: json.RawMessage(`{"type":"object"}`)},
		Err:  err,
		Run:  func(context.Context, json.RawMessage) (agent.Result, error) { return agent.Result{}, err },
	})}
}

// Tools returns the server's tools with the given names, or all tools if no names are given. The tools work until Close. The
// model sees their names with Config.Prefix, and with "_" in place of characters that providers reject. A tool is Parallel if it
// is listed in Config.Harmless. An unknown name, here or in Harmless, is an error. If the schema of a tool cannot be parsed, the
// tool is omitted and Validate adds a warning; unsupported keywords in a schema are not checked.
func (s *Server) Tools(ctx context.Context, names ...string) ([]agent.Middleware, error) {
	all, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	offered := offeredNames(s.cfg.Prefix, all)
	if len(names) == 0 {
		for _, t := range all {
			names = append(names, t.Name)
		}
	}
	for _, name := range s.cfg.Harmless {
		if !slices.ContainsFunc(all, func(t *sdk.Tool) bool { return t.Name == name }) {
			return nil, s.unknown(name, all)
		}
	}
	var out []agent.Middleware
	var used []Definition
	for _, name := range names {
		at := slices.IndexFunc(all, func(t *sdk.Tool) bool { return t.Name == name })
		if at < 0 {
			return nil, s.unknown(name, all)
		}
		m := s.middleware(all[at], offered[at])
		d, err := definitionOf(all[at])
		if err != nil {
			return nil, fmt.Errorf("mcp: %w", err)
		}
		out, used = append(out, m), append(used, d)
	}
	if err := s.accept(used...); err != nil {
		return nil, err
	}
	return out, nil
}

// list reads the list of the server's tools. If the session ends meanwhile, it tries a second time.
func (s *Server) list(ctx context.Context) ([]*sdk.Tool, error) {
	for first := true; ; first = false {
		session, err := s.acquire(ctx, 1)
		if err != nil {
			return nil, err
		}
		session.stale.Store(true)
		all, err := session.tools(ctx, s.cfg.StartTimeout)
		s.release()
		switch {
		case err == nil:
			return all, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case s.ctx.Err() != nil:
			return nil, ErrClosed
		case first && !answered(err) && !errors.Is(err, errTimeout):
			s.fail(session)
		default:
			return nil, fmt.Errorf("mcp: the tools of the server %q: %w", s.cfg.Name, hidden(s.secrets, err))
		}
	}
}

// tools returns the server's tools. It requests the list at the first call and again after the server has reported a change.
func (s *session) tools(ctx context.Context, timeout time.Duration) ([]*sdk.Tool, error) {
	select {
	case s.listing <- struct{}{}:
		defer func() { <-s.listing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !s.stale.Swap(false) {
		return s.listed, nil
	}
	all, err := s.list(ctx, timeout)
	if err != nil {
		s.stale.Store(true)
		return nil, err
	}
	s.listed = all
	return all, nil
}

// list returns the server's tools, after reading all pages of the list.
func (s *session) list(ctx context.Context, timeout time.Duration) (all []*sdk.Tool, err error) {
	ctx, cancel := s.within(ctx, timeout)
	defer cancel()
	size, again, known := 0, 0, map[string]bool{}
	for t, err := range s.client.Tools(ctx, nil) {
		if context.Cause(ctx) == errTimeout {
			s.doubt.Store(true)
			return nil, fmt.Errorf("no answer within %v: %w", timeout, errTimeout)
		}
		if err != nil {
			return nil, err
		}
		if known[t.Name] {
			if again++; again > len(all) { // some servers return the same page forever
				break
			}
			continue
		}
		known[t.Name] = true
		if all = append(all, t); len(all) > maxTools {
			return nil, fmt.Errorf("there are more than %d", maxTools)
		}
		if size += sizeOf(t); size > maxListed {
			return nil, fmt.Errorf("the list has more than %d bytes", maxListed)
		}
	}
	return all, nil
}

// sizeOf returns the size of a tool's definition in bytes.
func sizeOf(t *sdk.Tool) int {
	data, err := encode(t)
	if err != nil {
		return maxListed + 1
	}
	return len(data)
}

func (s *Server) unknown(name string, all []*sdk.Tool) error {
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
	}
	hint := "it has none"
	if near := suggest.Closest(name, slices.Values(names)); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if len(names) > 0 {
		hint = "it has " + strings.Join(names[:min(len(names), 20)], ", ")
	}
	return fmt.Errorf("mcp: the server %q has no tool %q: %s", s.cfg.Name, name, hint)
}

// middleware returns a middleware that offers a tool of the server to the model under the given name.
func (s *Server) middleware(t *sdk.Tool, offered string) agent.Middleware {
	input := json.RawMessage(`{"type":"object"}`)
	if t.InputSchema != nil {
		data, err := encode(t.InputSchema)
		if err == nil {
			_, _, err = schema.ParseForeign(data)
		}
		if err != nil {
			return agent.Use(agent.Tool{
				Tool: llm.Tool{Name: offered, Schema: input},
				Left: fmt.Errorf("mcp: the tool %q of the server %q is left out: its input schema: %w", t.Name, s.cfg.Name, err),
				Run:  func(context.Context, json.RawMessage) (agent.Result, error) { return agent.Result{}, err },
			})
		}
		input = data
	}
	harmless := slices.Contains(s.cfg.Harmless, t.Name)
	description := t.Description
	if description == "" {
		description = t.Title
	}
	if len(description) > maxDescription {
		description = strings.ToValidUTF8(description[:maxDescription], "") + " [cut]"
	}
	reading := reader{maxData: s.cfg.MaxData, output: outputSchema(t), secrets: s.secrets, method: s.method()}
	m := agent.Use(agent.Tool{
		Tool:      llm.Tool{Name: offered, Description: description, Schema: input},
		Parallel:  harmless,
		MaxResult: s.cfg.MaxText,
		Effects:   slices.Clone(s.needs),
		Run: func(ctx context.Context, input json.RawMessage) (agent.Result, error) {
			if len(input) == 0 {
				input = json.RawMessage("{}")
			}
			if !json.Valid(input) {
				return agent.Result{}, fmt.Errorf("the arguments of %s are no JSON; call it again with an object that fits its schema", offered)
			}
			redact.From(ctx).Join(s.secrets)
			res, err := s.call(ctx, t.Name, harmless, input)
			redact.From(ctx).Join(s.secrets) // a token may have been renewed
			if err != nil {
				return agent.Result{}, err
			}
			return reading.result(ctx, res)
		},
	})
	if s.cfg.Approver.Approve != nil && !harmless {
		m = tool.Confirm(m, s.cfg.Approver)
	}
	return m
}

// outputSchema returns the schema of the structured content. It returns nil, which accepts any content, if the output schema
// cannot be read, because that is no reason to reject a tool.
func outputSchema(t *sdk.Tool) *schema.Schema {
	if t.OutputSchema == nil {
		return nil
	}
	data, err := encode(t.OutputSchema)
	if err != nil {
		return nil
	}
	parsed, _, err := schema.ParseForeign(data)
	if err != nil {
		return nil
	}
	return parsed
}

// maxName is the maximum length of a tool's name that every provider accepts.
const maxName = 64

// offeredNames returns the names under which the tools are offered to the model. The names depend only on the server's complete
// list, and are unique: a hash is appended if a name is too long, or if it was changed and another tool would have the same name.
func offeredNames(prefix string, all []*sdk.Tool) []string {
	taken := map[string]int{}
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = plainName(prefix + t.Name)
		taken[out[i]]++
	}
	for i, t := range all {
		full := prefix + t.Name
		if len(out[i]) > maxName || taken[out[i]] > 1 && out[i] != full {
			out[i] = hashed(out[i], full)
		}
	}
	return out
}

// plainName returns name with "_" in place of characters that providers reject.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

func hashed(name, full string) string {
	sum := sha256.Sum256([]byte(full))
	end := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxName-len(end))] + end
}
