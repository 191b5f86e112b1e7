package anthropic

import (
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/structured"
)

// The provider compiles a schema into a grammar, whose size has limits that are not published. It
// refuses a request beyond them with status 400 and one of these messages. Source: Anthropic, guide
// "Structured outputs", section "Additional internal limits"; anthropic-sdk-python issue 1185.
var tooComplexMessages = []string{"too complex for compilation", "compiled grammar is too large"}

func tooComplex(err error) bool {
	refused, ok := errors.AsType[*llm.HTTPError](err)
	if !ok || refused.Status != http.StatusBadRequest {
		return false
	}
	for _, message := range tooComplexMessages {
		if strings.Contains(refused.Body, message) {
			return true
		}
	}
	return false
}

// strict reports whether tools are strict where they can be. Other servers of the protocol, and older
// models, may not know the field.
func (m *Model) strict() bool { return m.Own() && !m.loose.Load() }

// refusesStrict reports whether the provider refused a request because of its strict tools: all of them
// become one grammar.
func refusesStrict(err error) bool {
	refused, ok := errors.AsType[*llm.HTTPError](err)
	return tooComplex(err) || ok && refused.Status == http.StatusBadRequest && strings.Contains(refused.Body, "strict")
}

// maxUncompiled bounds the schemas that are remembered.
const maxUncompiled = 100

// uncompiled are schemas that the provider has refused as too complex.
type uncompiled struct {
	mu      sync.Mutex
	schemas map[string]bool
}

func (u *uncompiled) has(f *llm.Format) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return f != nil && u.schemas[string(f.Schema)]
}

// add remembers a schema, and forgets all others if there are too many.
func (u *uncompiled) add(f *llm.Format) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.schemas == nil || len(u.schemas) >= maxUncompiled {
		u.schemas = map[string]bool{}
	}
	u.schemas[string(f.Schema)] = true
}

// told returns the request with the format told in the system text, and not enforced.
func told(req llm.Request) llm.Request {
	req.System, req.ResponseFormat = structured.System(req.System, req.ResponseFormat, false), nil
	return req
}
