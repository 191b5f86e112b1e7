// Package record has the types and rules that the implementations of a journal.Journal and the recorder of package journal
// share about the record of a step: its attempts, its cost and its nodes.
package record
