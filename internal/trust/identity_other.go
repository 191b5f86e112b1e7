//go:build !linux && !darwin && !freebsd && !netbsd && !windows

package trust

import "io/fs"

// identity cannot tell files apart here.
func identity(string, fs.FileInfo) string { return "" }
