// Package log is the database-independent part of a journal. It implements journal.Journal over a [Database], which takes about a
// page of SQL.
//
// # What a database keeps
//
// There are three kinds of rows. A [Run] has its lease, the number of its records and the facts about it. A [Row] is a record of
// a step or a node; the rows of a run are numbered from 1 in the order of writing. A [Question] has a question and its answer.
// Package log encodes and seals them: the database stores bytes.
//
// # Writing
//
// One goroutine writes. Steps, starts and ends of runs, leases and questions share one queue, and each transaction writes the
// whole queue: callers that arrive while the disk is busy share the next commit. A write is encoded before it is queued. If a
// transaction fails with a temporary error, such as a full disk, it is retried and nothing is lost. After any other error each
// write is retried alone, so that only the bad one fails. If a transaction may have been committed although it failed, the writer
// asks the database before it writes again.
//
// A step is two writes: an intent before its work, and its result, with its node and the nodes that no step made. Where
// queue.Writes allows it, no caller waits for them. Such lazy writes are committed with the next write that a caller waits for,
// or after a moment. The start of a new run is lazy, too.
//
// # Leases
//
// A run belongs to one Journal at a time. Each transaction that writes for a run
// increments its beat, and is refused if the run has another owner: see [Tx.Advance].
// Other processes watch the beat by their own monotonic clock, so clocks need not agree.
// If this Journal holds the run "exp", its lease also covers inner runs such as "exp/17".
// The start and end of an inner run are queued without waiting: they become durable with
// the next commit, and at the latest when the outer run ends.
//
// A process that has lost a run puts the results of its running steps aside. They are rows with numbers from [Aside] on. It also
// increments the beat, so the holder notices and looks there before it works on a step. Only the holder numbers the records of a
// run, so a follower never misses one.
//
// # Reading
//
// A resumed run continues while its records are still being read. Every row is checked against its seal, and the rows are
// counted, before any new work starts. At most 4 MB of rows are read ahead of the callers that need them. For other rows the run
// keeps only 16 bytes of the digest and the number, and reads them again when needed.
//
// After each commit the writer wakes the followers of a run, as does a database that is notified of other processes' commits.
// Followers also poll for new rows. They read a batch at a time, so a slow follower keeps no transaction open.
package log
