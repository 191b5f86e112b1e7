// Package rest turns HTTP servers into capabilities of kind http. It sends the envelope of the request with POST, as JSON. The
// server answers with the envelope of the response, in JSON or EDN, or with the bare out:
//
//	grader := rest.New(call.Metadata{ID: "grade/remote", Effects: []string{"net"}}, rest.Config{
//		URL:    "https://grader.example.com/v1/grade",
//		Header: map[string]rest.Value{"Authorization": {Env: "GRADER_AUTHORIZATION"}},
//		Scope:  call.Scope{Net: call.Net{"https://grader.example.com"}},
//	})
//
// A server streams by sending its answer in pieces, in the format that [call.ReadOutput] describes: one per line or, as
// text/event-stream, one per event. The pieces are passed on as they arrive.
//
// The same invocation, repeated after a crash, has the same Idempotency-Key. A step that is repeated on purpose, or with another
// request, has a new Idempotency-Key.
//
// A busy (429, 503) or unreachable server results in the error runtime/unavailable. Its Retry-After is respected. Redirects are
// followed if they keep the method and lead to a server in the scope or, if the scope lists no servers, to the same server. The
// configured headers are sent only to the server of the URL. Errors contain no header, and no part of a URL after its path.
package rest
