// Package postgres stores runs in a PostgreSQL database, which several processes and machines can share:
//
//	db, err := postgres.Open(ctx, "postgres://stone@db.example.com/stone", postgres.Options{})
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	result, err := stone.Run(ctx, pipeline, stone.Config{RunID: "nightly", Recorder: journal.Keep(db, journal.Options{})})
//
// The guarantees are described in package journal. To use such databases with the command line of package cli (stone run --db
// postgres://…), import this package.
//
// # Storage
//
// The tables are in the schema "stone" of the database. The server must be PostgreSQL 13 or newer, and the database's encoding
// must be UTF8. Open creates missing tables, and refuses tables with a different version.
//
// A single goroutine makes all writes, and callers that are waiting for the server share the next commit, which needs one round
// trip if it contains only steps. An acknowledged write is on the server's disk. If the server stops or the connection is lost,
// writes are retried: see Options.Retry and Options.RetryResults. If the connection is lost during a commit, the DB asks the
// server whether the transaction was committed, and repeats the writes if it was not. None of these errors repeats the work of a
// step.
//
// A failover to an asynchronous standby loses acknowledged writes. Configure PostgreSQL to wait for the standby
// (synchronous_standby_names), or expect the last steps to run again.
//
// # Leases
//
// A run belongs to one DB at a time, from Acquire or its first step until Release or Close. The owner increments a number in the
// run's row four times per lease, and with each commit. Another process that wants the run watches that number. If it changes,
// the run is refused with a [*journal.HeldError]; if it stays the same for as long as the lease, the run is taken over. Each
// process reads only its own monotonic clock, so the machines' clocks need not be synchronized. If the server does not respond
// for half a lease, watching starts over, because no owner can renew a lease while the server is down.
//
// Each commit locks the rows of its runs and checks their owners, and taking over a run locks the run's row, too. Therefore a slow
// owner cannot write records for a run that has been taken over. If a process sends nothing for a quarter of the lease, the server
// ends its transaction, so a suspended process does not keep a lock. A slow process is given more time with each retry.
//
// A process that has lost its run may still finish a step that has been paid for. The step's result is put aside, and the new
// owner finds it before it would run that step. Failures, new steps and ends of the run are refused.
//
// DB.Abandoned finds the runs of dead processes. It is meant for services that take over such runs.
//
// # Poolers
//
// The DB works behind PgBouncer in transaction mode: its only session state is prepared statements, and it stops using them as
// soon as the server has lost one. Notifications wake followers of other processes' runs. They require a session, so
// Options.Listen must be the address of the server itself. Without notifications, followers poll about once a second.
package postgres
