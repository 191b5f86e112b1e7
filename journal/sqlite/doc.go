// Package sqlite makes runs durable in one SQLite file, without cgo:
//
//	journal, err := sqlite.Open("stone.db", sqlite.Options{})
//	if err != nil {
//		return err
//	}
//	defer journal.Close()
//	result, err := stone.Run(ctx, pipeline, stone.Config{RunID: "nightly", Recorder: journal})
//
// Run again with the same RunID, in this process or in another one, a run goes on
// where it stopped. A step whose result was acknowledged is never run again. A
// step that was in flight at a crash may run again; [DB.Steps] reports it as
// possibly paid. Nothing is ever half-written, and a resumed run yields the same
// DAG.
//
// # How it is kept
//
// The file is in WAL mode with synchronous=FULL: what is acknowledged survives the
// loss of power. One goroutine writes; whoever calls while it waits for the disk
// shares the next commit. A step is two writes: that its work begins, before the
// work, and its result together with its node and the nodes that no step made.
// A write that fails is tried again, and the work is not: see Options.Retry.
//
// # Leases
//
// A run belongs to one DB at a time, from its first step until Close or Release.
// The owner counts up a number in the file four times per lease. Whoever else wants
// the run watches that number: if it moves, the run is refused with a [*HeldError];
// if it stands still for the time of the lease, the run is taken over. Each side
// reads only its own monotonic clock, so clocks that are set or differ do no harm.
// Each commit checks in its transaction that the run is still its own, so an owner
// that was only slow cannot write after it was taken over.
//
// The file must be on a local disk, as SQLite wants it.
package sqlite
