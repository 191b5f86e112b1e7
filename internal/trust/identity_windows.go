package trust

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity tells a file from the one that replaces it, by the time of its creation.
func identity(_ string, info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Win32FileAttributeData)
	if !ok {
		return ""
	}
	return fmt.Sprint(s.CreationTime.Nanoseconds())
}
