package llm

import (
	"errors"

	"github.com/stonelayer/stone/llm/internal/rules"
)

// TooLong reports whether err is a provider's refusal of a request that is longer than the model's window. Servers
// report it differently: by a code, or by wordings that are known. A request that is refused because of its rate is
// never too long, and neither is one whose MaxTokens alone is too large for the window.
func TooLong(err error) bool {
	if e, ok := errors.AsType[*HTTPError](err); ok {
		switch e.Status {
		case 400, 413, 422, 500: // LM Studio and Ollama answer 500
			return rules.TooLong(e.Body)
		}
		return false
	}
	e, ok := errors.AsType[*ProviderError](err)
	return ok && rules.TooLong(e.Type+" "+e.Code+" "+e.Message)
}
