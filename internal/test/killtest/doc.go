// Package killtest contains only tests. They kill processes during whole runs with journal/sqlite and journal/postgres.
//
// A child process runs a pipeline that contains one of everything: leaves, a loop, a fan-out, and an agent whose tools append
// lines to a file. The process is killed at every point of a step between intent and acknowledgement, and is restarted until its
// run has finished. Then every recorded step must have been done exactly once, no line may be missing, and the DAG must equal the
// DAG of an undisturbed run. Other tests check the same for a run that is canceled, whose database is locked, read-only or
// damaged, whose disk is full, that two processes want to hold at the same time, that other processes take over, or that reuses
// the records of another run.
//
// TestFaults consists of many kinds of rounds. In each round, a run meets faults at random moments. Processes are killed or
// suspended, and continue with wrong clocks or a different prompt. Files are locked, and disks are full. A database server is
// killed, stopped, paused or replaced by its standby, or refuses connections. Several processes share one database, and one of
// them holds a run while the others wait to take it over; they are killed one after the other, with and without a budget. A Stone
// server is killed while clients watch its runs and give contradictory answers, and a receiver receives webhooks.
//
// The tests are judged by a ledger of files, in which each process records, with the time, each call, each answer, and each result
// that the store has acknowledged. A call may be repeated only if it was in flight in a process that was killed or gave up, so
// that no result was acknowledged. If a database server fails instead, no call may be repeated. A process that is suspended for
// three leases and then continues must not write anything, which triggers in the database check, but must not lose any of its
// answers either. All calls of a run together must stay within its budget. A run counts as hung if nothing is added to its ledger
// for two minutes; there are no other time limits.
//
// TestOutages makes the store of a Stone server unavailable for a while, during short and during long steps: another program locks
// it, the disk is full, or the database server is stopped. All runs must end done, and no step may be done twice.
//
// STONE_FAULTS is the percentage of the rounds to run. The default is 4. At least one round of each kind is always run. To run all
// of them and print a table of the results:
//
//	make test-faults
package killtest
