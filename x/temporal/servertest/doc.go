// Package servertest tests package x/temporal with a real Temporal server. It is a separate module, so that only its tests build
// the server, which takes about 12 minutes of CPU time.
package servertest
