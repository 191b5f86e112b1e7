// Package powerloss tests journal/sqlite against power losses: on a simulated disk, at
// every operation that changes it. It is a separate module, so that its only dependency,
// a SQLite whose file system is written in Go, stays out of the tested module.
//
// The tested code is journal/sqlite itself, with its statements and settings: the go.mod
// here replaces its driver by another package, see the folder driver. That one is also
// SQLite, of about the same version.
//
// # The disk
//
// A [Disk] records the operations of SQLite: writes, truncations, syncs, created and
// removed names. The test adds notes to the same record: that the work of a step was
// done, that its result was acknowledged. Then [Disk.Crash] returns files that may be
// left at any moment of the record: all synced data, and a random part of the rest. A
// write that was not synced is kept, dropped or torn into pieces of any length,
// independent of earlier and later writes. A file whose folder was not synced may be
// missing, or exist again.
//
// A disk may also lie: its syncs do nothing. A test that finds no fault with such a disk
// is useless.
package powerloss
