package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Definition is a server's description of a tool. Its JSON has the form that the protocol defines.
type Definition struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// definitionOf returns the definition of a tool. The protocol library has parsed the tool's schemas, so their JSON always has the
// same form.
func definitionOf(t *sdk.Tool) (d Definition, err error) {
	d = Definition{Name: t.Name, Title: t.Title, Description: t.Description}
	for _, part := range []struct {
		of any
		to *json.RawMessage
		no bool
	}{{t.InputSchema, &d.InputSchema, t.InputSchema == nil}, {t.OutputSchema, &d.OutputSchema, t.OutputSchema == nil}, {t.Annotations, &d.Annotations, t.Annotations == nil}} {
		if part.no {
			continue
		}
		if *part.to, err = encode(part.of); err != nil {
			return d, fmt.Errorf("the definition of the tool %q: %w", t.Name, err)
		}
	}
	return d, nil
}

// Digest returns the SHA-256 hash of the definition, in hexadecimal digits.
func (d Definition) Digest() string {
	raw, err := encode(d)
	if err != nil {
		return "" // a part is not JSON; no pinned digest equals ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Changes returns a line that describes the differences from an earlier definition, or "" if there are none.
func (d Definition) Changes(from Definition) string {
	var out []string
	for _, part := range []struct{ name, was, is string }{
		{"name", from.Name, d.Name},
		{"title", from.Title, d.Title},
		{"description", from.Description, d.Description},
		{"input schema", plain(from.InputSchema), plain(d.InputSchema)},
		{"output schema", plain(from.OutputSchema), plain(d.OutputSchema)},
		{"annotations", plain(from.Annotations), plain(d.Annotations)},
	} {
		if part.was != part.is {
			was, is := apart(part.was, part.is)
			out = append(out, fmt.Sprintf("%s: %s is now %s", part.name, was, is))
		}
	}
	return strings.Join(out, "; ")
}

// plain normalizes JSON, because definitions may have been stored in another form.
func plain(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) == nil {
		if data, err := encode(v); err == nil {
			return string(data)
		}
	}
	return string(raw)
}

const (
	maxDiff  = 300 // the maximum number of bytes shown on each side of a change
	diffEdge = 30  // the number of bytes shown before the first difference
)

// apart returns the quoted parts of two texts around the first difference between them.
func apart(a, b string) (string, string) {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	from := max(0, at-diffEdge)
	for from > 0 && !utf8.RuneStart(a[from]) {
		from--
	}
	show := func(s string) string {
		before, after := "", ""
		if from > 0 {
			before = "…"
		}
		if s = s[from:]; len(s) > maxDiff {
			s, after = strings.ToValidUTF8(s[:maxDiff], ""), fmt.Sprintf(" (%d bytes more)", len(s)-maxDiff)
		}
		return fmt.Sprintf("%q", before+s) + after
	}
	return show(a), show(b)
}

// Pinned returns a function for Config.Accept. It accepts a definition only if the digest is the one that digests contains for
// the tool's name. Otherwise it returns an error that contains the definition's digest.
func Pinned(digests map[string]string) func([]Definition) error {
	return func(all []Definition) error {
		for _, d := range all {
			if want, digest := digests[d.Name], d.Digest(); want == "" || want != digest {
				return fmt.Errorf("the definition of the tool %q is not pinned: read it, and pin %s", d.Name, digest)
			}
		}
		return nil
	}
}

// accept stores definitions that are new or that Config.Accept accepts, and returns an error for any other.
func (s *Server) accept(all ...Definition) error {
	s.accepting.Lock()
	defer s.accepting.Unlock()
	var fresh, changed []Definition
	for _, d := range all {
		if was, ok := s.known[d.Name]; !ok {
			fresh = append(fresh, d)
		} else if d.Changes(was) != "" {
			changed = append(changed, d)
		}
	}
	if len(fresh)+len(changed) == 0 {
		return nil
	}
	asked := append(changed, fresh...)
	switch {
	case s.cfg.Accept != nil:
		if err := s.cfg.Accept(asked); err != nil {
			return fmt.Errorf("mcp: the server %q: %w", s.cfg.Name, hidden(s.secrets, err))
		}
	case changed != nil:
		d := changed[0]
		return fmt.Errorf("mcp: the server %q has changed the definition of its tool %q: %s; connect again to accept it",
			s.cfg.Name, d.Name, s.secrets.Clean(d.Changes(s.known[d.Name])))
	}
	for _, d := range asked {
		s.known[d.Name] = d
	}
	return nil
}

// verify compares the session's definition of a tool with the accepted definition. If they differ, refused is the reason; if the
// tools cannot be listed, failed is the reason. If the tool is missing or the definitions are equal, both are nil.
func (s *Server) verify(ctx context.Context, on *session, name string) (refused, failed error) {
	all, err := on.tools(ctx, s.cfg.StartTimeout)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(t *sdk.Tool) bool { return t.Name == name })
	if at < 0 { // the server itself will report that it lacks the tool
		return nil, nil
	}
	d, err := definitionOf(all[at])
	if err != nil {
		return err, nil
	}
	return s.accept(d), nil
}
