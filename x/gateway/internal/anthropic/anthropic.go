// Package anthropic implements the server side of Anthropic's Messages API, so that clients such as Claude Code can use pipelines
// and intents as models. Package openai runs them:
//
//	POST /v1/messages                 {"model": "stone/chat/answer", "max_tokens": 1024, "messages": […]}
//	POST /v1/messages/count_tokens    an estimate
//	GET  /v1/models                   in Anthropic's form for a request with the header anthropic-version
//
// A caller's token may be in the header x-api-key. [Parameters] lists the supported parameters.
//
// # Streams
//
// If a stream ends with an error, clients repeat the request and pay twice. A stream that waits for checks therefore starts only
// when the answer has been accepted, or after 15 seconds: an earlier failure is reported by the HTTP status.
//
// # Thinking
//
// If a client requests thinking, the answer includes the model's reasoning. In place of the provider's signature, it contains the
// name of the run, and the run keeps the data that the provider needs in the next turn.
package anthropic

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/x/gateway/internal/openai"
)

// Routes adds the Messages API to the routes of package openai. The lists of models then serve both protocols.
func Routes(all []openai.Route) []openai.Route {
	lists := map[string]handler{"GET /v1/models": listModels, "GET /v1/models/{model...}": getModel}
	for i := range all {
		if own, theirs := lists[all[i].Pattern], all[i].Serve; own != nil {
			all[i].Serve = func(w http.ResponseWriter, r *http.Request, b openai.Backend) error {
				if Serves(r) {
					return own(w, r, b)
				}
				return theirs(w, r, b)
			}
		}
	}
	return append(all, openai.Route{Pattern: "POST /v1/messages", Starts: true, Serve: post},
		openai.Route{Pattern: "POST /v1/messages/count_tokens", Serve: count})
}

type handler = func(w http.ResponseWriter, r *http.Request, b openai.Backend) error

// Serves reports whether a request comes from an Anthropic client, which expects errors in Anthropic's format.
func Serves(r *http.Request) bool {
	path := r.URL.Path
	return path == "/v1/messages" || strings.HasPrefix(path, "/v1/messages/") || strings.HasPrefix(path, "/v1/") && r.Header.Get("Anthropic-Version") != ""
}

// Token returns the request with its token in the header Authorization, if an Anthropic client has sent it in x-api-key.
func Token(r *http.Request) *http.Request {
	key := r.Header.Get("X-Api-Key")
	if key == "" || !Serves(r) || r.Header.Get("Authorization") != "" {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+key)
	return r
}

// kinds maps HTTP statuses to Anthropic's error types.
var kinds = map[int]string{
	http.StatusUnauthorized: "authentication_error", http.StatusPaymentRequired: "billing_error", http.StatusForbidden: "permission_error",
	http.StatusNotFound: "not_found_error", http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error",
	http.StatusGatewayTimeout: "timeout_error", overloaded: "overloaded_error",
}

type object = map[string]any

// overloaded is the status that Anthropic uses for an overloaded service.
const overloaded = 529

// failureOf returns the reply for an error, and the HTTP status. A failed run has the status 424 rather than 422, as for OpenAI's
// clients, because after 400 and 422, Claude Code repeats the request up to five times, with fewer features each time.
func failureOf(e *openai.Error, w http.ResponseWriter) (status int, f object) {
	status = e.Status
	switch {
	case e.Type == "insufficient_quota":
		status = http.StatusPaymentRequired
	case e.Final && status == http.StatusUnprocessableEntity:
		status = http.StatusFailedDependency
	case status == http.StatusServiceUnavailable:
		status = overloaded
	}
	kind, text := kinds[status], e.Message
	if kind == "" && status >= http.StatusInternalServerError {
		kind = "api_error"
	}
	if e.Final {
		text = e.Code + ": " + text
	}
	f = object{"type": cmp.Or(kind, "invalid_request_error"), "message": text}
	if e.Param == "thread" { // in this protocol, clients send the whole conversation
		f["details"] = object{"error_code": "thread_unsupported_request", "unsupported": []string{"thread"}}
	}
	return status, object{"type": "error", "error": f, "request_id": w.Header().Get("X-Request-Id")}
}

// Fail replies to a request with an error.
func Fail(w http.ResponseWriter, e *openai.Error) {
	status, f := failureOf(e, w)
	named(w)
	if e.Final {
		w.Header().Set("X-Should-Retry", "false")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(f) // an error means that the client is gone
}

// named sets the header from which clients read the request id.
func named(w http.ResponseWriter) { w.Header().Set("Request-Id", w.Header().Get("X-Request-Id")) }

func reply(w http.ResponseWriter, value any) error {
	named(w)
	return openai.Reply(w, value)
}

func describe(m openai.Model) object {
	return object{"type": "model", "id": m.ID(), "display_name": m.Name, "created_at": "1970-01-01T00:00:00Z"}
}

func listModels(w http.ResponseWriter, _ *http.Request, b openai.Backend) error {
	list := []object{}
	for _, m := range openai.Talking(b) {
		list = append(list, describe(m))
	}
	page := object{"data": list, "has_more": false, "first_id": nil, "last_id": nil}
	if n := len(list); n > 0 {
		page["first_id"], page["last_id"] = list[0]["id"], list[n-1]["id"]
	}
	return reply(w, page)
}

func getModel(w http.ResponseWriter, r *http.Request, b openai.Backend) error {
	m, err := openai.Find(b, r.PathValue("model"))
	if err != nil {
		return err
	}
	return reply(w, describe(m))
}
