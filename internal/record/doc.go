// Package record contains types and rules for the records of steps, such as attempts, costs and nodes. They are shared by package
// journal and the implementations of journal.Journal.
package record
