// Package limit paces requests to a server that many users of a process share: models,
// capabilities, and the runs that ask them.
//
// A [Limiter] bounds the requests and tokens per minute and the requests at once.
//
// # What the server says
//
// A Limiter believes the server. If a server reports that it accepts no request before a time,
// nothing is sent before it, and the rest that it reports is not exceeded until it is renewed.
// If it refuses a request because of its rate, all requests wait. After a pause one request
// goes first, and the others follow when the server has accepted it.
//
// # Who goes first
//
// Requests wait in arrival order, in two queues: one for requests that a person waits for, and one for the others. While both
// queues wait, three of four places go to the first one and the fourth to the second. So a person waits for few others,
// and a batch still makes progress. Within a queue, the higher priority of a [Rank] goes first, and tenants take turns. The request
// whose turn it is lets no later one pass, so small requests do not overtake a large one for ever.
//
// # Several processes
//
// A Limiter belongs to its process. If N processes ask the same server with the same key, give each one Nth of the
// limits. What the server says rules in any case.
//
// # Waiting
//
// The end of the context ends the wait at once. Time spent waiting does not count
// towards a timeout of [WithTimeout]: it says nothing about the server's speed.
package limit
