// Package step is the seam between a run and what executes and records its steps. A
// program that only composes and runs pipelines does not need it.
//
// An [Executor] decides where and when a step happens: it is given a [Task], and does it
// here or sends its [Order] to another process, which calls stone.Perform. A [Recorder]
// remembers the [Record] of each step under its [Key]. Both stand in stone.Config;
// package journal is a recorder, and package executortest tests an executor.
package step
