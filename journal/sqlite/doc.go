// Package sqlite stores runs in an SQLite file, without cgo:
//
//	db, err := sqlite.Open("stone.db", sqlite.Options{})
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	result, err := stone.Run(ctx, pipeline, stone.Config{RunID: "nightly", Recorder: journal.Keep(db, journal.Options{})})
//
// The guarantees are described in package journal.
//
// # Storage
//
// The file is in WAL mode with synchronous=FULL, so an acknowledged write survives a power loss. A single goroutine makes all
// writes: steps, starts and ends of runs, leases and questions. Callers that are waiting for the disk share the next commit. A
// step consists of two writes: an intent before its work, and its result together with its node and any ancestors of the node that
// no step created. A failed write is retried without repeating the work: see Options.Retry and Options.RetryResults. A write that
// can never succeed does not affect other writes.
//
// New data is first written to a log, a second file whose name ends in -wal. It is copied into the main file when the log is
// large, when runs are idle and when the file is closed. A copy of the main file without the log lacks the newest steps. SQLite
// ignores everything from the first damaged page of the log on, without an error, so a run that is resumed after such damage
// repeats the steps recorded in these pages.
//
// Runs, records and questions have checksums, and the records of a run are counted. A resumed run continues while it is still
// being read, but does not start a new step before everything has been checked. A changed or missing record is a
// [*journal.DamageError] that names run, step and node. With each renewal of a lease the DB also checks the file itself: if it was
// removed or replaced, every run in it ends with that error.
//
// Reading requires neither the write lock nor write permission. A DB opens at most nine connections.
//
// # Leases
//
// A run belongs to one DB at a time, from Acquire or its first step until Release or Close. The owner increments a number in the
// file four times per lease, and with each commit. Another process that wants the run watches that number. If it changes, the run
// is refused with a [*journal.HeldError]; if it stays the same for as long as the lease, the run is taken over. Each process reads
// only its own monotonic clock, so it does not matter if clocks differ or are adjusted. The transaction of each commit checks that
// this DB still owns the run, so a slow owner cannot write after the run has been taken over. The results of the old owner's
// running steps are put aside for the new owner; all its other writes are refused.
//
// If the DB holds the run "exp", its lease also covers inner runs such as "exp/17". The start and end of an inner run need no
// separate commit: they become durable with the next commit, at the latest when the outer run ends.
//
// The file must be on a local disk, as SQLite requires.
package sqlite
