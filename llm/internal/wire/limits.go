package wire

import (
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
)

// limits holds the answer limits learned from rejections, by model. A negative limit means that requests do not set a limit.
type limits struct {
	mu    sync.Mutex
	known map[string]int
}

// within returns the request with an answer limit that the server accepts.
func (l *limits) within(model string, req *llm.Request) *llm.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := l.known[model]
	if most == 0 || most > 0 && req.MaxTokens > 0 && req.MaxTokens <= most {
		return req
	}
	bounded := *req
	bounded.MaxTokens = max(most, 0)
	return &bounded
}

// learn reports whether err rejects the limit of a request. If so, it remembers a lower limit or, unless the protocol requires a
// limit, that no limit should be set.
func (l *limits) learn(model string, sent int, required bool, err error) bool {
	refused, ok := errors.AsType[*llm.HTTPError](err)
	if !ok || sent == 0 || !slices.Contains([]int{http.StatusBadRequest, http.StatusPaymentRequired, http.StatusUnprocessableEntity}, refused.Status) {
		return false
	}
	most, any, ok := rules.AnswerLimit(refused.Body)
	if !ok || most >= sent {
		return false
	}
	if !any && !required {
		most = -1 // the server itself knows how much of the window remains
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= maxWays {
		l.known = map[string]int{}
	}
	l.known[model] = most
	return true
}

// limit returns the answer limit in a body, or 0 if there is none.
func (s *Setup) limit(body map[string]any) int {
	var at any = body
	for _, name := range s.MostField {
		fields, _ := at.(map[string]any)
		at = fields[name]
	}
	n, _ := at.(int)
	return n
}

// least returns the smaller of two limits; 0 means none.
func least(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
