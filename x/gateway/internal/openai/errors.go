package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/talk"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// Error is an error in OpenAI's format.
type Error struct {
	Status  int    `json:"-"`
	Final   bool   `json:"-"` // repeating the request would fail or cost something again
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    string `json:"code"`
	Param   string `json:"-"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// MarshalJSON writes an empty Param as null.
func (e *Error) MarshalJSON() ([]byte, error) {
	type plain Error
	out := struct {
		*plain
		Param *string `json:"param"`
	}{plain: (*plain)(e)}
	if e.Param != "" {
		out.Param = &e.Param
	}
	return json.Marshal(out)
}

// Wrong returns the error for a request with an invalid parameter.
func Wrong(param, code, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: "invalid_request_error", Code: code, Param: param}
}

// Of returns the *Error in err, or an *Error made from the *talk.Error in err. It returns nil if err contains neither.
func Of(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	switch e, ok := errors.AsType[*talk.Error](err); {
	case ok && e.Paid:
		return lost(e.Code, e.Message)
	case ok:
		return Wrong(e.Param, e.Code, "%s", e.Message)
	}
	return nil
}

// OfProblem converts a problem of package serve to OpenAI's format.
func OfProblem(p *api.Problem) *Error {
	return &Error{Status: p.Status, Message: p.Error(), Type: typeOf(p.Status), Code: p.Type}
}

func typeOf(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

// statuses maps failure kinds to HTTP statuses. All other kinds are 422: the pipeline or a gate has refused the request and would
// do so again. Clients repeat requests after 429 and 5xx, so a run that has been billed gets 422 for any failure.
var statuses = map[string]int{
	reasons.InputRejected:   http.StatusBadRequest,
	reasons.InputInvalid:    http.StatusBadRequest,
	reasons.ForbiddenEffect: http.StatusForbidden,
	reasons.BudgetExhausted: http.StatusTooManyRequests,
	reasons.InvokeFailed:    http.StatusBadGateway,
	reasons.Unavailable:     http.StatusServiceUnavailable,
	reasons.NoCandidate:     http.StatusServiceUnavailable,
	reasons.SoftTimeout:     http.StatusGatewayTimeout,
}

// ofRun returns the error for a run that has stopped without a result.
func ofRun(run api.Run) *Error {
	switch {
	case run.State == journal.Canceled && !retracted(run):
		return &Error{Status: http.StatusUnprocessableEntity, Final: true, Message: "the run was canceled", Type: "invalid_request_error", Code: "canceled"}
	case run.Failure == nil:
		return &Error{Status: http.StatusUnprocessableEntity, Final: true, Message: fmt.Sprintf("the run %s is %s: answer its questions, see GET /v1/questions", run.ID, run.State), Type: "invalid_request_error", Code: string(run.State)}
	}
	return Failed(run.Failure.Kind, run.Failure.Reason, run.Usage.Tokens() > 0 || run.Usage.USD > 0)
}

// Failed returns the error for a run that has failed with the given kind. The argument paid means that the run may have been
// billed.
func Failed(kind, reason string, paid bool) *Error {
	status := cmp.Or(statuses[kind], http.StatusUnprocessableEntity)
	if status >= http.StatusTooManyRequests && paid {
		status = http.StatusUnprocessableEntity
	}
	e := &Error{Status: status, Final: true, Message: reason, Type: typeOf(status), Code: kind}
	if kind == reasons.BudgetExhausted {
		e.Type = "insufficient_quota"
	}
	return e
}

// failure returns the error in a failed response. Its code is always one of the protocol's codes, because clients such as Codex
// repeat a request after an unknown code. Its message begins with the failure kind.
func (e *Error) failure() *responseError {
	code := "invalid_prompt" // this code tells clients not to repeat the request
	switch {
	case e.Type == "insufficient_quota":
		code = e.Type
	case e.Status >= http.StatusInternalServerError:
		code = "server_error"
	case e.Status == http.StatusTooManyRequests:
		code = "rate_limit_exceeded"
	}
	return &responseError{code, e.Code + ": " + e.Message}
}

// lost returns the error for a run whose answer has been paid for but cannot be delivered.
func lost(code, message string) *Error {
	return &Error{Status: http.StatusUnprocessableEntity, Final: true, Message: message, Type: "invalid_request_error", Code: code}
}

// unread returns the error for a finished run whose answer cannot be decoded.
func unread(err error) *Error {
	if e := Of(err); e != nil {
		return e
	}
	return lost("internal", "the result of the run cannot be read")
}

// retracted reports whether a run was cancelled because a client had received text that was rejected later.
func retracted(run api.Run) bool { return run.Failure != nil && run.Failure.Kind == string(Retracted) }

// Write replies with the error. If the error is Final, a header tells clients not to repeat the request, as they otherwise do
// after some statuses.
func (e *Error) Write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if e.Final {
		w.Header().Set("X-Should-Retry", "false")
	}
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(map[string]*Error{"error": e}) // an error means that the client is gone
}
