// Package powerloss tests journal/sqlite against power failures, on a simulated disk and at every operation that changes the disk.
// It is a separate module, so that its only dependency, an SQLite whose file system can be written in Go, is not a dependency of
// the tested module.
//
// The tested code is journal/sqlite itself, with its statements and settings. The go.mod of this module replaces the driver of
// journal/sqlite with another package (see the folder driver), which is also SQLite, in about the same version.
//
// # The disk
//
// A [Disk] records the operations of SQLite: writes, truncations, syncs, and created and removed names. The test adds notes to the
// same record, for example that a step's work was done or that its result was acknowledged. [Disk.Crash] then returns files that
// may be left after a power failure at any moment of the record: all synced data, and a random part of the rest. A write that was
// not synced is kept, dropped or torn into pieces of any length, independently of earlier and later writes. A file whose folder
// was not synced may be missing, or a removed file may exist again.
//
// A disk can also lie, which means that its syncs do nothing. A test that does not fail with such a disk is useless.
package powerloss
