// Package step defines the interfaces between a run and the code that executes and
// records its steps. A program that only composes and runs pipelines does not need it.
//
// An [Executor] decides where and when a step runs: it gets a [Task], and runs it here
// or sends its [Order] to another process, which calls stone.Perform. A [Recorder]
// stores the [Record] of each step under its [Key]. Both are set in stone.Config.
// Package journal is a recorder, and package executortest tests an executor.
package step
