// Package dag implements the record of a run: an append-only graph of typed,
// content-addressed nodes.
//
// A [Node] has a type, a content, parents and an id. The id is the SHA-256 hash of the canonical JSON of content, parents and
// type. A changed node would have another id, so the id of a run's last node covers all nodes that it depends on. Meta and time
// are not part of the id: they describe how the node was made.
//
// A [DAG] is a small value. A copy is a snapshot: appending to it does not change the
// original. Any number of goroutines may read and extend copies of one DAG
// concurrently.
//
// A [Type] ties a name to a Go type. It encodes and decodes contents, provides the JSON Schema, and is itself the [Reader] of the
// nearest node:
//
//	var Ticket = dag.NewType[TicketDoc]("ticket")
//
//	d := dag.Of(Ticket.With(TicketDoc{Title: "crash on start"}))
//	doc, err := Ticket.From(d)
//
// # Reading
//
// A [Reader] is a query with a Go type. A [Type] reads its nearest node; [All], [Maybe], [Since], [Latest], [Lens] and
// [Everything] read in other ways, and [Derive] makes a reader from a reader:
//
//	replies, err := dag.All(Reply).From(d)
//	title := dag.Derive(Ticket, func(t TicketDoc) string { return t.Title })
//
// The nearest node is searched for along first parents, from the place of the next node. The search stays on one line of work and
// does not cross into a sibling lane. All returns every node of a type in append order: parents before children, and lanes in
// source order, whichever finished first. The cost of either read does not depend on the depth of the graph.
//
// # Fan-outs
//
// Lanes are DAGs that extend one base: each starts with [Lane] or with its own node, and [Join] combines them. The heads of the
// lanes are then heads of the DAG, but reads start at the node before the fan-out; see [DAG.Next]. [Rebase] copies the nodes that one DAG has beyond another onto a third.
//
// # Failures
//
// A failure travels in flight: [DAG.WithFailure] returns a DAG with the same
// nodes, for which InFlight is true and Latest is the failure node.
// [DAG.RecordFailure] adds that node to the graph. [DAG.Failed] is true in both cases.
//
// # Making nodes
//
// [Type.Append] and [Type.With] make nodes of a type. [NewNode] makes a node of a [Spec], for code that knows a type only by name
// or as an [AnyType]. [NewFailure] makes a failure node, [Extend] adds nodes to a DAG, and [ParseID] reads the text of an id.
// [ReaderFunc] makes a reader from a function. [Lost] returns each [LostLane] of a fan-out. [Derive2] and [Derive3] combine
// several readers into one. [Lanes2] and [Lanes3] read a [Row2] or [Row3] for each lane. [OwnContent] returns a content without
// the fields that are kept beside it.
package dag
