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
// STONE_KILLS sets the number of processes that are killed at random moments; the default
// is 20.
package killtest
