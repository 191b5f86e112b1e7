// Package rest makes capabilities of servers, which are of kind http. The envelope of
// the request is sent with POST as JSON, the answer is the envelope of the response,
// in JSON or EDN, or the out alone:
//
//	grader := rest.New(call.Metadata{ID: "grade/remote", Effects: []string{"net"}}, rest.Config{
//		URL:    "https://grader.example.com/v1/grade",
//		Header: map[string]rest.Value{"Authorization": {Env: "GRADER_AUTHORIZATION"}},
//		Scope:  scope.Scope{Net: scope.Net{"https://grader.example.com"}},
//	})
//
// A server streams by sending its answer in pieces, which [call.ReadOutput] describes:
// one a line, or as text/event-stream one in the data of each event. They are passed on as
// they come.
//
// The same invocation, made again after a crash, has the same Idempotency-Key.
//
// A server that is busy (429, 503) or out of reach is runtime/unavailable, and when it
// says how long to wait, that is known. Redirects are followed if they keep the
// method, within the scope or, if that names no servers, to the same server. The configured headers go to the server of the URL only.
// No header and nothing of a URL beyond its path appears in an error.
package rest
