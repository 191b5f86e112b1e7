package anthropic

import (
	"errors"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/llm"
)

// strictRefusals are parts of the messages with which the provider refuses strict tools: it does not
// know the field, or all of them become one grammar, whose size has limits that are not published.
// Source: Anthropic, guide "Structured outputs", section "Additional internal limits";
// anthropic-sdk-python issue 1185.
var strictRefusals = []string{"strict", "too complex for compilation", "compiled grammar is too large"}

// strict reports whether tools are strict where they can be. Other servers of the protocol, and older
// models, may not know the field.
func (m *Model) strict() bool { return m.Own() && !m.loose.Load() }

// refusesStrict reports whether the provider refused a request because of its strict tools.
func refusesStrict(err error) bool {
	refused, ok := errors.AsType[*llm.HTTPError](err)
	if !ok || refused.Status != http.StatusBadRequest {
		return false
	}
	for _, part := range strictRefusals {
		if strings.Contains(refused.Body, part) {
			return true
		}
	}
	return false
}
