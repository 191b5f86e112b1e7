package trust

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/windows"
)

// identity returns a string that distinguishes a file from a file that replaces it. It contains the volume, the file number and
// the creation time. The time alone is not enough: a file that is created within 15 seconds under the name of a removed file
// inherits the removed file's creation time.
func identity(file string, _ fs.FileInfo) string {
	name, err := windows.UTF16PtrFromString(file)
	if err != nil {
		return ""
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	h, err := windows.CreateFile(name, 0, share, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(h)
	var i windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &i); err != nil {
		return ""
	}
	return fmt.Sprintf("%x %x%08x %d", i.VolumeSerialNumber, i.FileIndexHigh, i.FileIndexLow, i.CreationTime.Nanoseconds())
}
