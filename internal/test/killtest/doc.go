// Package killtest kills whole runs over journal/sqlite and journal/postgres. It contains only tests.
//
// A child process runs a pipeline that has one of everything: leaves, a loop, a fan-out
// and an agent whose tools append lines to a file. It is killed at every point of a step between
// intent and acknowledgement, and is started again until its run has finished. Then every recorded
// step was done once, no line is missing, and the DAG equals the DAG of an undisturbed run. Further tests
// check the same for a run that is cancelled, that finds its database locked, read-only or damaged
// or its disk full, that two processes want at once, that other processes take over, or that
// reuses records of another run.
//
// TestFaults is a campaign: rounds of many kinds, each a run that meets faults at random moments.
// Processes are killed or stopped, and go on with wrong clocks or another prompt. Files are locked
// and disks are full. A server of databases is killed, stopped, paused or replaced by its standby, or
// refuses connections. Teams of processes over one database, of which one holds a run while the others wait
// to take it over, are killed one after the other, with and without a budget. A server of runs is killed while
// clients watch them and contradict each other, and a receiver gets webhooks.
//
// The oracle is a ledger of files: each process notes there, with the time, each call, each answer,
// and each result that the store acknowledged. A call may be repeated only if it was in flight in a
// process that was killed or gave up, which means that no result was acknowledged. When a server of
// databases fails instead, no call may be repeated. A process that is stopped for three leases and then
// continues writes nothing, as triggers in the database see, but loses none of its answers. All calls
// together are within the budget of their run. A run counts as hung if its ledger stands still
// for two minutes; there are no other limits of time.
//
// TestOutages keeps the store from a server of runs for a while, in the midst of short and of long steps: by the lock of another program,
// a full disk, or a server of databases that is stopped. All runs end done, and no step is worked twice.
//
// STONE_FAULTS is the percentage of the rounds that are done: 4 if it is not set, but at least one
// round of each kind. All of them, with a table of the figures:
//
//	make test-faults
package killtest
