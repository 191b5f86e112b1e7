// Package dag holds the record of a run: an append-only graph of typed,
// content-addressed nodes.
//
// A [Node] has a type, a content, parents and an id. The id is the SHA-256 of
// the canonical JSON of content, parents and type, so that a node cannot be
// changed without becoming another one, and the id of the last node of a run
// stands for everything that happened before it. Meta and time are beside the
// id: they say how a node came to be, not what it is.
//
// A [DAG] is a small value. Copying it is the snapshot; appending to a copy
// leaves the original as it was. Any number of goroutines may read and extend
// copies of one DAG at the same time.
//
// A [Type] ties a name to a Go type. It writes and reads contents, carries the
// JSON Schema, and is itself the [Reader] of the nearest node:
//
//	var Ticket = dag.NewType[TicketDoc]("ticket")
//
//	d := dag.Of(Ticket.With(TicketDoc{Title: "crash on start"}))
//	doc, err := Ticket.From(d)
//
// # Reading
//
// A [Reader] is a query with a Go type. A type reads its nearest node; [All],
// [Maybe], [Since], [Latest] and [Everything] read in other ways, and [Derive]
// makes a reader of a reader:
//
//	replies, err := dag.All(Reply).From(d)
//	title := dag.Derive(Ticket, func(t TicketDoc) string { return t.Title })
//
// The nearest node is found along first parents, from the place where the next
// node would stand. That is one line of work: it does not cross into a sibling
// lane. All returns every node of a type in append order, which puts parents
// before children and lanes in source order, whichever finished first. Neither
// costs more in a deep graph than in a shallow one.
//
// # Fan-outs
//
// Lanes are DAGs that extend one base: each starts with [Lane] or with a node of
// its own, and [Join] brings them together. The heads of the lanes are then
// heads of the DAG, and each of them stands for the node before the fan-out:
// reads start there, see [DAG.Next]. [Merge] is the plain union, for DAGs of
// any origin, and [Rebase] puts what one DAG has beyond another onto a third.
//
// # Failures
//
// A failure travels in flight: [DAG.WithFailure] returns a DAG with the same
// nodes, for which Failed is true and Latest is the failure node. It becomes a
// node of the graph only by [DAG.RecordFailure].
package dag
