// Package sqlite keeps runs in one SQLite file, without cgo:
//
//	db, err := sqlite.Open("stone.db", sqlite.Options{})
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	result, err := stone.Run(ctx, pipeline, stone.Config{RunID: "nightly", Recorder: journal.Keep(db, journal.Options{})})
//
// What it promises is in the comment of package journal.
//
// # How it is kept
//
// The file is in WAL mode with synchronous=FULL: what is acknowledged survives the
// loss of power. One goroutine writes, and callers that wait for the disk share the
// next commit: steps, the begin and end of runs, leases and questions alike. A step
// is two writes: that its work starts, and its result together with its node and the
// nodes that no step made. A write that fails is tried again, and the work is not:
// see Options.Retry and Options.RetryResults. A write that can never succeed fails
// alone.
//
// Until it is copied into the file, what was written is in a log beside it, whose
// name ends in -wal. That happens when the log is large, when runs are idle and when
// the file is closed. A copy of the file without its log lacks the newest steps.
// SQLite ends the log at its first damaged page without an error, so a run that is
// resumed after such damage repeats the steps behind it.
//
// Runs, records and questions are sealed, and the records of a run are counted. A run
// that is resumed goes on while it is still being read, but starts nothing new before
// all is checked. What was changed or is missing is a [*journal.DamageError] that
// names run, step and node. With each sign of life the DB also looks whether the file
// is still there: if it was removed or replaced, every run in it ends with that error.
//
// Reading needs neither the lock of writers nor the right to write. A DB opens at
// most nine connections.
//
// # Leases
//
// A run belongs to one DB at a time, from Acquire or its first step until Release
// or Close. The owner counts up a number in the file four times per lease, and with
// each commit. Whoever else wants the run watches that number: if it moves, the run
// is refused with a [*journal.HeldError]; if it stands still for the time of the
// lease, the run is taken over. Each side reads only its own monotonic clock, so
// clocks that are set or differ do no harm. Each commit checks in its transaction
// that the run is still its own, so an owner that was only slow cannot write after it
// was taken over.
//
// A run whose name continues that of a run which the DB holds, as "exp/17" continues
// "exp", is under the lease of that run. Its begin and end cost no commit of their
// own: they are durable with whatever is written next, at the latest when the outer
// run ends.
//
// The file must be on a local disk, as SQLite wants it.
package sqlite
