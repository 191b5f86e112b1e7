// Package record has what the implementations of a journal.Journal, the recorder of
// package journal and the workers of package remote share about the record of a step: its
// attempts, its cost, its nodes, and steps that another process has done.
package record
