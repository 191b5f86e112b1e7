// Package servertest tests package x/temporal with a real Temporal server. It is a
// module of its own, so that only its tests build the server, which takes about 12 minutes of CPU time.
package servertest
