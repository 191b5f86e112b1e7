//go:build !linux && !darwin && !freebsd && !netbsd && !windows

package trust

import "io/fs"

// identity returns "", because it cannot distinguish a file from its replacement on this system.
func identity(string, fs.FileInfo) string { return "" }
