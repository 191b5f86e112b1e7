// Package powerloss takes the power away from journal/sqlite: on a simulated disk,
// at every operation that changes it. It is a module of its own, so that the one
// thing it needs, a SQLite whose file system is written in Go, stays out of the
// module that it tests.
//
// The code that is tested is journal/sqlite as it stands, with its statements and
// settings: the go.mod here puts another package in the place of its driver, see
// the folder driver. That is SQLite too, of about the same version.
//
// # The disk
//
// A [Disk] records what SQLite does to it: writes, truncations, syncs, names that
// come and go. What a test knows goes into the same record: that the work of a step
// was done, that its result was acknowledged. After that, [Disk.Crash] says what
// may be left at any moment of the record: all that was synced, and of the rest
// what chance wants. A write that was not synced is kept, dropped or torn in
// pieces of any length, no matter what became of those before and after it; a
// file whose folder was not synced may be missing, or be there again.
//
// A disk may also lie: its syncs do nothing. A test that finds nothing wrong with
// such a disk is blind.
package powerloss
