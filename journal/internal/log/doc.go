// Package log is the database-independent part of a journal. It implements journal.Journal on top of a [Database].
//
// # What a database keeps
//
// There are three main kinds of rows. A [Run] contains a run's lease, the number of its records and its description. A [Row] is a
// record of a step or a node; the rows of a run are numbered from 1 in the order in which they are written. A [Question] contains
// a question and its answer. Package log encodes the rows and adds checksums, called seals: the database only stores bytes.
//
// # Writing
//
// All writes are made by a single goroutine, the writer. Steps, starts and ends of runs, leases and questions share one queue, and
// each transaction writes the whole queue, so callers that arrive while the disk is busy share the next commit. A write is encoded
// before it is queued. If a transaction fails with a temporary error, such as a full disk, it is retried and nothing is lost.
// After any other error each write is retried in a transaction of its own, so that only the faulty write fails. If it is unknown
// whether a failed transaction was committed, the writer asks the database before it writes again.
//
// A step consists of two writes: an intent, before its work starts, and its result, together with its node and any ancestors of
// the node that no step created. Where queue.Writes allows it, no caller waits for these writes. Such lazy writes are committed
// with the next write that a caller waits for, or after a short delay. The start of a new run is lazy, too.
//
// # Leases
//
// A run belongs to one Journal at a time. Each transaction that writes records of a run increments the run's beat, and is refused
// if the run has another owner: see [Tx.Advance]. Other processes use their own monotonic clocks to watch the beat, so clocks
// need not be synchronized. If this Journal holds the run "exp", its lease also covers inner runs such as "exp/17". No caller
// waits for the start and end of an inner run to be written: they become durable with the next commit, at the latest when the
// outer run ends.
//
// A process that has lost a run puts the results of its running steps aside, in rows with numbers from [Aside] on. It also
// increments the beat, so the holder notices this and looks for such rows before it runs a step. Only the holder assigns numbers
// to a run's records, so a follower never misses a record.
//
// # Reading
//
// A resumed run continues while its records are still being read. Before any new work starts, all rows have been counted and
// checked against their seals. At most 4 MB of rows are read before callers need them. Of all other rows the run keeps only the
// number and 16 bytes of the digest, and reads the row again when it is needed.
//
// After each commit the writer wakes the followers of runs. A database that is notified of other processes' commits wakes them,
// too. In addition, followers poll for new rows. They read rows in batches, so a slow follower does not keep a transaction open.
package log
