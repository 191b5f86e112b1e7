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
// loss of power. One goroutine writes; whoever calls while it waits for the disk
// shares the next commit. A step is two writes: that its work begins, before the
// work, and its result together with its node and the nodes that no step made.
// A write that fails is tried again, and the work is not: see Options.Retry.
//
// A run that is resumed goes on while it is still being read from the file. Every
// row has a seal over all that is replayed, and a row that was changed is refused
// with a [*journal.DamageError] that names run, step and node.
//
// # Leases
//
// A run belongs to one DB at a time, from Acquire or its first step until Release
// or Close. The owner counts up a number in the file four times per lease. Whoever
// else wants the run watches that number: if it moves, the run is refused with a
// [*journal.HeldError]; if it stands still for the time of the lease, the run is
// taken over. Each side reads only its own monotonic clock, so clocks that are set
// or differ do no harm. Each commit checks in its transaction that the run is still
// its own, so an owner that was only slow cannot write after it was taken over.
//
// The file must be on a local disk, as SQLite wants it.
package sqlite
