// Package killtest kills whole runs over journal/sqlite and journal/postgres. It contains only tests.
//
// A child process runs a pipeline that has one of everything: leaves, a loop, a fan-out
// and an agent whose tools append lines to a file. It is killed at random moments, and at
// every point of a step between intent and acknowledgement, and is started again until
// its run has finished. Then every recorded step was done once, no line is missing, and
// the DAG is that of an undisturbed run. Further tests check the same for a run that is
// cancelled, that finds its database locked, read-only or damaged or its disk full, that
// two processes want at once, that other processes take over, or that reuses records of
// another run.
//
// Further tests have teams: four processes over one database, of which one holds a run of
// 1,000 calls while all do its leaves. Their oracle is a ledger of files: each process notes
// there, with the time, each call, each answer, and each result that the store acknowledged.
// A call may be repeated only if it was in flight in a process that was killed, which means
// that no result was acknowledged. When the server crashes instead, no call may be repeated.
// A process that is stopped for three leases and then continues writes nothing, as triggers
// in the database see, but loses at most 5 % of its answers. Eight processes that are killed
// one after the other make no more calls than the budget of their run allows.
//
// STONE_FAULTS sets how many of the faults happen: 4 if it is not set, for 4 % of them. The
// whole suite, with its figures:
//
//	make test-faults
package killtest
