package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/llm/internal/rules"
)

// RetriedError reports a request that failed in several attempts. It wraps the error of the last attempt.
type RetriedError struct {
	Tried int // number of attempts, including the first
	Err   error
}

// Error returns the last error and the number of attempts.
func (e *RetriedError) Error() string { return fmt.Sprintf("%v (tried %d times)", e.Err, e.Tried) }

// Unwrap returns the last error.
func (e *RetriedError) Unwrap() error { return e.Err }

// Attempts returns the number of attempts. An outer retry policy counts them towards its own limit.
func (e *RetriedError) Attempts() int { return e.Tried }

// EmptyResponseError reports a reply without text, tool calls or refusal.
type EmptyResponseError struct {
	StopReason string
	RequestID  string
}

// Error returns a message that includes the stop reason.
func (e *EmptyResponseError) Error() string {
	return "llm: the model answered with neither text nor a tool call" +
		paren("stop reason "+orNone(e.StopReason), e.RequestID)
}

// HTTPError reports a response with a status other than 2xx.
type HTTPError struct {
	Status     int
	Body       string // at most 64 KB
	RequestID  string
	RetryAfter time.Duration // delay that the server requested; 0 if it requested none
	// Final means that the same request would fail again, because the response has the header X-Should-Retry: false or says that
	// the account's quota is exhausted.
	Final bool
}

// Error returns one line with the status and the server's message.
func (e *HTTPError) Error() string {
	s := fmt.Sprintf("llm: HTTP status %d", e.Status)
	if text := errorText(e.Body); text != "" {
		s += ": " + text
	}
	if e.RetryAfter > 0 {
		s += fmt.Sprintf("; the server asks to wait %s", e.RetryAfter)
	}
	return s + paren(e.RequestID)
}

// ConnectError reports a server that could not be reached, or a connection that broke
// before the answer started.
type ConnectError struct {
	URL string // without user, query and fragment
	Err error
}

// Error returns the URL and the cause.
func (e *ConnectError) Error() string {
	return fmt.Sprintf("llm: cannot reach %s: %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// TruncatedError reports a stream that ended before the protocol's end marker.
type TruncatedError struct {
	RequestID string
	Err       error // why the connection ended; nil if it was closed normally
}

// Error returns a message that includes Err unless it is nil.
func (e *TruncatedError) Error() string {
	s := "llm: the stream was cut short before the answer's end"
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s + paren(e.RequestID)
}

// Unwrap returns the cause.
func (e *TruncatedError) Unwrap() error { return e.Err }

// ProviderError reports an error that the provider sent inside a response with status 200.
type ProviderError struct {
	Message   string // the provider's own words
	Type      string // provider's name for the kind of error, such as "overloaded_error"
	Code      string
	RequestID string
}

// Error returns one line with the provider's message.
func (e *ProviderError) Error() string {
	return "llm: the provider reports: " + oneLine(e.Message) + paren(e.Type, e.Code, e.RequestID)
}

// ProtocolError reports a response that violates the protocol.
type ProtocolError struct {
	Reason    string
	RequestID string
}

// Error returns one line with the reason.
func (e *ProtocolError) Error() string {
	return "llm: the answer breaks the protocol: " + oneLine(e.Reason) + paren(e.RequestID)
}

// TimeoutError reports that a phase of a request took longer than Timeouts allows.
type TimeoutError struct {
	Phase     string // "connect", "first byte", "silence" or "total"
	Limit     time.Duration
	RequestID string
}

// Error returns a message that names the phase and its limit.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("llm: timeout: %s took longer than %s; see Timeouts", e.Phase, e.Limit) + paren(e.RequestID)
}

// Timeout returns true, so that os.IsTimeout recognizes a TimeoutError.
func (e *TimeoutError) Timeout() bool { return true }

// RepetitionHit describes a repetition that a detector has found in text.
type RepetitionHit struct {
	Kind     string    `json:"kind"`             // "ngram" (text repeated verbatim) or "compression" (nothing new)
	Window   []byte    `json:"window,omitempty"` // for "ngram": the repeated bytes
	Ratios   []float64 `json:"ratios,omitempty"` // for "compression": ratios of the last checks, newest first
	Position int64     `json:"position"`         // number of bytes seen when the detector tripped
}

// String describes the repetition on one line.
func (h RepetitionHit) String() string {
	if h.Kind == "ngram" {
		return fmt.Sprintf("the same %d bytes again and again, noticed at byte %d", len(h.Window), h.Position)
	}
	return fmt.Sprintf("text that says nothing new, noticed at byte %d", h.Position)
}

// RepetitionTrippedError reports a stream that was stopped because the model repeated
// itself.
type RepetitionTrippedError struct {
	Hit       RepetitionHit
	Channel   string // "response" or "thinking"
	Partial   string // text received on the channel
	RequestID string
}

// Error returns the channel and the repetition.
func (e *RepetitionTrippedError) Error() string {
	return fmt.Sprintf("llm: the model got stuck in its %s: %s", e.Channel, e.Hit) + paren(e.RequestID)
}

// RepetitionExhaustedError reports a model that repeated itself in every attempt.
type RepetitionExhaustedError struct {
	Attempts  int // number of retries allowed
	LastHit   *RepetitionHit
	RequestID string
}

// Error returns the number of retries and the last hit.
func (e *RepetitionExhaustedError) Error() string {
	s := fmt.Sprintf("llm: the model still repeats itself after %d retries", e.Attempts)
	if e.LastHit != nil {
		s += ": " + e.LastHit.String()
	}
	return s + paren(e.RequestID)
}

// RequestID returns the provider's ID of the request that failed with err, or "" if err does not contain an ID.
func RequestID(err error) string {
	if e, ok := errors.AsType[identified](err); ok {
		return e.requestID()
	}
	return ""
}

type identified interface {
	error
	requestID() string
}

func (e *EmptyResponseError) requestID() string       { return e.RequestID }
func (e *HTTPError) requestID() string                { return e.RequestID }
func (e *TruncatedError) requestID() string           { return e.RequestID }
func (e *ProviderError) requestID() string            { return e.RequestID }
func (e *ProtocolError) requestID() string            { return e.RequestID }
func (e *TimeoutError) requestID() string             { return e.RequestID }
func (e *RepetitionTrippedError) requestID() string   { return e.RequestID }
func (e *RepetitionExhaustedError) requestID() string { return e.RequestID }

// Retryable reports whether the same request may succeed if it is repeated: the provider
// was busy or unavailable, or the connection failed. An error with a method
// Retryable() bool decides for itself.
func Retryable(err error) bool {
	if e, ok := errors.AsType[fault.Retrier](err); ok {
		return e.Retryable()
	}
	if e, ok := errors.AsType[*HTTPError](err); ok {
		switch {
		case e.Final:
			return false
		case e.Status == 408, e.Status == 409, e.Status == 429:
			return true
		case e.Status == 501, e.Status == 505:
			return false
		}
		return e.Status >= 500
	}
	if e, ok := errors.AsType[*ProviderError](err); ok {
		for _, name := range []string{e.Type, e.Code} {
			switch name {
			case "overloaded_error", "rate_limit_error", "rate_limit_exceeded", "api_error", "server_error", "timeout_error":
				return true
			}
			if rules.EndingOf(name) == rules.Retry {
				return true
			}
		}
		return strings.HasPrefix(e.Code, "5") || e.Code == "429"
	}
	if e, ok := errors.AsType[*TimeoutError](err); ok {
		return e.Phase != "total"
	}
	_, connect := errors.AsType[*ConnectError](err)
	_, cut := errors.AsType[*TruncatedError](err)
	return connect || cut
}

// RetryAfter returns the delay before the next request that err requires, or 0 if it requires none.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*HTTPError](err); ok {
		return e.RetryAfter
	}
	if e, ok := errors.AsType[*limit.TooLateError](err); ok && e.Patience > 0 {
		return e.Wait
	}
	return 0
}

// errorText returns the message in the body of an error response, or the whole body if it contains no message, on one line.
func errorText(body string) string {
	var v struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal([]byte(body), &v) != nil {
		return oneLine(body)
	}
	var inner struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(v.Error, &inner) == nil && inner.Message != "" {
		return oneLine(inner.Message)
	}
	if v.Message != "" {
		return oneLine(v.Message)
	}
	return oneLine(body)
}

// oneLine returns s with each run of white space replaced by a single space, truncated to 300 bytes.
func oneLine(s string) string {
	const limit = 300
	cut := len(s) > 4*limit
	if cut {
		s = s[:4*limit]
	}
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "")
	if len(s) > limit {
		s, cut = strings.ToValidUTF8(s[:limit], ""), true
	}
	if cut {
		s += " …"
	}
	return s
}

// paren returns the non-empty parts in parentheses, or "" if all are empty. The last part is a request ID.
func paren(parts ...string) string {
	last := len(parts) - 1
	if parts[last] != "" {
		parts[last] = "request " + parts[last]
	}
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return " (" + strings.Join(kept, ", ") + ")"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// TooLong reports whether a provider rejected a request because it is longer than the model's window. Servers report this with a
// code or in various wordings. A request that is rejected because of a rate limit, or because MaxTokens alone exceeds the window,
// is not too long.
func TooLong(err error) bool {
	if e, ok := errors.AsType[*HTTPError](err); ok {
		switch e.Status {
		case 400, 413, 422, 500: // LM Studio and Ollama answer with 500
			return rules.TooLong(e.Body)
		}
		return false
	}
	e, ok := errors.AsType[*ProviderError](err)
	return ok && rules.TooLong(e.Type+" "+e.Code+" "+e.Message)
}
