//go:build !unix

package cli

// openFiles returns the maximum number of files that this process may have open, or 0 if unknown.
func openFiles() uint64 { return 0 }
