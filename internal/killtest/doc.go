// Package killtest kills whole runs over journal/sqlite, and has nothing else than
// tests. A child process runs a pipeline that has one of everything: leaves, a
// loop, a fan-out and an agent whose tools append lines to a file. It is killed at
// random moments, and at every point of a step between intent and acknowledgement,
// and is started again until its run has come to its end. Then every step that was
// recorded has been done once, no line is missing, and the DAG is that of a run
// that nobody disturbed. The same holds for a run that is told to end, that finds
// its database locked, read-only or damaged or its disk full, that two processes want
// at once, or that reuses what another run has recorded.
//
// With STONE_KILLS in the environment that many processes are killed at random
// moments, without it 20.
package killtest
