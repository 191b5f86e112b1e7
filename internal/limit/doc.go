// Package limit paces requests to a server that many parts of a process share: models, capabilities, and the runs that call them.
//
// A [Limiter] limits the requests and tokens per minute and the number of concurrent requests.
//
// # What the server says
//
// A Limiter follows the server. If a server accepts no requests before some time, none is sent earlier. A remaining amount that
// it reports is not exceeded until it is renewed. If the server refuses a request because of its rate, all requests wait. After a
// pause one request goes first, and the others follow when the server has accepted it.
//
// # Who goes first
//
// Requests wait in arrival order, in two queues: one for requests that a person waits for, and one for all others. While both
// have requests, three of four places go to the first. People therefore wait for few others, and a batch still makes progress.
// Within a queue, the higher priority of a [Rank] goes first, and tenants take turns. No later request passes the one whose turn
// it is, so small requests cannot delay a large one forever.
//
// # Several processes
//
// A Limiter belongs to its process. If N processes use the same server with the same key, give each one Nth of the limits. The
// server's own limits apply in any case.
//
// # Waiting
//
// The end of the context ends the wait at once. Waiting does not count towards a timeout of [WithTimeout].
package limit
