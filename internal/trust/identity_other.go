//go:build !linux && !darwin && !windows

package trust

import "io/fs"

// identity cannot tell files apart here.
func identity(string, fs.FileInfo) string { return "" }
