// Package log is the part of a journal that does not depend on its database. It
// implements journal.Journal over a [Database], which is about a page of SQL.
//
// # What a database keeps
//
// There are three kinds of rows. A [Run] holds the lease, how many records the run
// has, and what is known of it. A [Row] is a record of what was done; the rows of a
// run are numbered from 1 in the order in which they were written. A [Question]
// holds a question and its answer. Package log encodes and seals them: the database
// stores bytes.
//
// # Writing
//
// One goroutine writes. Steps, the begin and end of runs, leases and questions go
// into one queue, and each transaction takes all that is in it: whoever calls while
// the disk is busy shares the next commit. What a caller wants is encoded before it
// is queued. If a transaction fails with an error that may pass, such as a full
// disk, it is tried again and nothing is lost. After any other error each write is
// tried alone, so that only the bad one fails.
//
// A step is two writes: that its work starts, before the work, and its result,
// with its node and the nodes that no step made.
//
// # Leases
//
// A run belongs to one Journal at a time. Each transaction that writes for a run
// moves its beat, and is refused if the run has another owner: see [Tx.Advance].
// Others watch the beat by their own monotonic clock, so no clock has to agree with
// another one. A run whose name continues that of a run which this Journal holds,
// as "exp/17" continues "exp", is under the lease of that run. Its begin and end
// are queued and nobody waits for them: they are durable with whatever is written
// next, and at the latest when the outer run ends.
//
// # Reading
//
// A run that is resumed goes on while it is still being read. Every row is checked
// against its seal, and the rows are counted, before any new work starts.
//
// The writer wakes those who follow a run after each commit. They also look for new
// rows at an interval, since another process may write them. They read a batch at a
// time, so a slow follower holds no transaction open.
package log
