// Package limit controls the rate of requests to a server that is shared by many parts of a process: models, capabilities, and the
// runs that call them.
//
// A [Limiter] limits the requests and tokens per minute and the number of concurrent requests.
//
// # What the server says
//
// A Limiter obeys the limits that the server reports. If the server says that it accepts no requests before a certain time, none
// is sent earlier. If the server reports a remaining quota, the quota is not exceeded until it is renewed. If the server refuses a
// request because of its rate, all requests wait. After the pause a single request is sent first, and the others follow when the
// server has accepted it.
//
// # Who goes first
//
// Requests wait in arrival order, in two queues: one for requests that a person waits for, and one for all others. While both
// queues contain requests, three of four requests that start are from the first. People therefore wait for only a few other
// requests, while other work still makes progress. Within a queue, requests with a higher priority (see [Rank]) start first, and
// tenants take turns. No request can overtake the one whose turn it is, so small requests cannot delay a large one forever.
//
// # Several processes
//
// A Limiter belongs to its process. If N processes use the same server with the same key, give each one Nth of the limits. The
// server's own limits apply in any case.
//
// # Waiting
//
// A request stops waiting as soon as its context is done. Waiting does not count towards a timeout set with [WithTimeout].
package limit
