// Package flock locks files between processes on the same machine. Waiting processes are woken in the order of arrival, but a new
// process may acquire the lock first. The system releases a lock when the process dies or the file is closed. Each opened file has
// a lock of its own, even within one process.
//
// On systems without flock(2), all functions return errors.ErrUnsupported.
package flock
