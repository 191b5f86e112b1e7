// Package flock locks files among the processes of one machine. Processes that wait are
// woken in the order in which they came, but one that comes at that moment may be first. The system releases the lock of a process that dies, and
// that of a file that is closed. Each opened file has a lock of its own, in one process too.
//
// Systems without flock(2) return errors.ErrUnsupported.
package flock
