// Package flock locks files among the processes of one machine. Waiting processes are woken in order of arrival, but a new one
// may be faster. The system releases a lock when its process dies or its file is closed. Each opened file has its own lock, even
// within one process.
//
// Systems without flock(2) return errors.ErrUnsupported.
package flock
