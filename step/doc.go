// Package step defines the interface between a run and the code that records its steps. A program
// that only composes and runs pipelines does not need it.
//
// A [Recorder] stores the [Record] of each step under its [Key]. It is set in stone.Config. Package journal provides one.
package step
