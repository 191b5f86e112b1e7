// Package flock locks files among the processes of one machine. Processes that wait are
// woken in the order in which they came, but one that comes at that moment may be first. The system releases a lock when
// its process dies or its file is closed. Each opened file has a lock of its own, in one process too.
//
// Systems without flock(2) return errors.ErrUnsupported.
package flock
