//go:build !unix

package cli

// openFiles returns 0: on these systems, the maximum number of open files is not known.
func openFiles() uint64 { return 0 }
