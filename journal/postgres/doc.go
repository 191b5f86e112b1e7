// Package postgres keeps runs in a PostgreSQL database that several processes and machines
// share:
//
//	db, err := postgres.Open(ctx, "postgres://stone@db.example.com/stone", postgres.Options{})
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	result, err := stone.Run(ctx, pipeline, stone.Config{RunID: "nightly", Recorder: journal.Keep(db, journal.Options{})})
//
// The guarantees are described in package journal. Import the package to let the command line of package cli use such databases:
// stone run --db postgres://….
//
// # Storage
//
// The tables are in the schema "stone" of the database, which needs PostgreSQL 13 or newer
// and the encoding UTF8. Open creates missing tables, and refuses tables of another version.
//
// One goroutine writes, and callers that wait for the server share the next commit, in one round trip if it has only steps. An
// acknowledged write is on the server's disk. If the server stops or the connection is lost, writes are retried: see
// Options.Retry and Options.RetryResults. If the connection is lost during a commit, the DB asks the server whether the commit
// happened, and otherwise writes again. None of these errors repeats the work of a step.
//
// A failover to an asynchronous standby loses acknowledged writes. Let PostgreSQL wait for the standby
// (synchronous_standby_names), or expect that the last steps run again.
//
// # Leases
//
// A run belongs to one DB at a time, from Acquire or its first step until Release or Close. The owner increments a number in the
// run's row four times per lease, and with each commit. Another process that wants the run watches that number. If it changes,
// the run is refused with a [*journal.HeldError]; if it stays the same for as long as the lease, the run is taken over. Each side
// reads only its own monotonic clock, so the clocks of machines need not agree. The watch restarts after half a lease without an
// answer from the server: while it is down, no owner can renew a lease.
//
// Each commit locks the rows of its runs and compares their owners, and taking over a run locks its row too. So a slow owner
// cannot write into a run that was taken over. The server ends a transaction whose process is silent for a quarter of the lease,
// so a stopped process keeps no lock. A slow process gets more time with each retry.
//
// A process that lost its run may still finish a step that was paid for. Its result is put aside: the new owner finds the result
// before it works on that step. Its failures, new steps and ends are refused.
//
// DB.Abandoned finds the runs of dead processes, for services that take them over.
//
// # Poolers
//
// The DB works behind PgBouncer in transaction mode: it uses no session state, and no named statements once the server has lost
// one. Notifications wake followers of other processes' runs and need a session: Options.Listen is the address of the server
// itself. Without notifications, followers poll about once a second.
package postgres
