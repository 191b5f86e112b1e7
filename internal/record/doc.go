// Package record has types and rules for a step's record, such as attempts, cost and nodes. Implementations of journal.Journal
// share them with package journal.
package record
