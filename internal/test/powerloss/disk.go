package powerloss

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
)

// Disk is a file system in memory that consists of a single folder and records its operations. It implements [vfs.VFS] and is safe
// for concurrent use.
type Disk struct {
	// Lies makes syncs do nothing. It must be set before the disk is used.
	Lies bool

	shared string // folder of the operating system; see NewDisk

	mu    sync.Mutex
	names map[string]*inode
	log   []event
	start int // index in the log of the first operation after NewDisk
}

// An inode is a file independent of its name.
type inode struct {
	data  []byte
	locks locks
}

// An event is an operation on the disk, or a note that the test has added.
type event struct {
	op   op
	file *inode
	name string // name that the file gains or loses
	data []byte // data that is written
	at   int64  // offset of the data, or size to which the file is truncated
	note any
}

type op int

const (
	create op = iota
	remove
	write
	truncate
	syncFile
	syncFolder
	note
)

// NewDisk returns a disk that contains the given files, which are synced. The folder is a folder of the operating system. While
// files on the disk are open, no other disk may use it, because SQLite maps a file in the folder into memory that its connections
// share. Nothing in the folder survives a power failure.
func NewDisk(files map[string][]byte, folder string) *Disk {
	d := &Disk{shared: folder, names: map[string]*inode{}}
	for name, data := range files {
		f := &inode{data: slices.Clone(data)}
		d.names[name] = f
		d.log = append(d.log, event{op: create, name: name, file: f}, event{op: write, file: f, data: data}, event{op: syncFile, file: f})
	}
	d.log = append(d.log, event{op: syncFolder})
	d.start = len(d.log)
	return d
}

// Note adds a note to the record of operations at the current moment.
func (d *Disk) Note(what any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, event{op: note, note: what})
}

// Moments returns the number of recorded operations.
func (d *Disk) Moments() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, e := range d.log[d.start:] {
		if e.op != note {
			n++
		}
	}
	return n
}

// Open implements [vfs.VFS].
func (d *Disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if name == "" { // a temporary file of SQLite, which ends with its process
		return new(vfsutil.SliceFile), flags | vfs.OPEN_MEMORY, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f, found := d.names[name]
	if !found && flags&vfs.OPEN_CREATE == 0 || found && flags&vfs.OPEN_EXCLUSIVE != 0 {
		return nil, 0, sqlite3.CANTOPEN
	}
	if !found {
		f = new(inode)
		d.names[name] = f
		d.log = append(d.log, event{op: create, name: name, file: f})
	}
	const logs = vfs.OPEN_WAL | vfs.OPEN_MAIN_JOURNAL | vfs.OPEN_SUPER_JOURNAL
	return &file{
		disk: d, inode: f,
		folder: flags&vfs.OPEN_CREATE != 0 && flags&logs != 0,
		shm:    vfs.NewSharedMemory(filepath.Join(d.shared, name+"-shm"), flags),
	}, flags, nil
}

// Delete implements [vfs.VFS].
func (d *Disk) Delete(name string, sync bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return sqlite3.IOERR_DELETE_NOENT
	}
	delete(d.names, name)
	d.log = append(d.log, event{op: remove, name: name})
	if sync && !d.Lies {
		d.log = append(d.log, event{op: syncFolder})
	}
	return nil
}

// Access implements [vfs.VFS].
func (d *Disk) Access(name string, _ vfs.AccessFlag) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.names[name] != nil, nil
}

// FullPathname implements [vfs.VFS].
func (d *Disk) FullPathname(name string) (string, error) { return filepath.Base(name), nil }

// file is an inode that a connection has opened.
type file struct {
	*inode
	disk   *Disk
	folder bool // sync the folder together with the file, as SQLite does on Unix for logs that it may have created
	lock   vfs.LockLevel
	shm    vfs.SharedMemory
}

func (f *file) ReadAt(b []byte, at int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if at >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, at int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.data = put(f.data, b, at)
	f.disk.log = append(f.disk.log, event{op: write, file: f.inode, data: slices.Clone(b), at: at})
	return len(b), nil
}

func (f *file) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.data = resize(f.data, size)
	f.disk.log = append(f.disk.log, event{op: truncate, file: f.inode, at: size})
	return nil
}

func (f *file) Sync(vfs.SyncFlag) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.Lies {
		return nil
	}
	f.disk.log = append(f.disk.log, event{op: syncFile, file: f.inode})
	if f.folder {
		f.folder = false
		f.disk.log = append(f.disk.log, event{op: syncFolder})
	}
	return nil
}

func (f *file) Size() (int64, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return int64(len(f.data)), nil
}

func (f *file) Close() error {
	if err := f.Unlock(vfs.LOCK_NONE); err != nil {
		return err
	}
	if f.shm == nil {
		return nil
	}
	if err := f.shm.Close(); err != nil {
		return fmt.Errorf("memory that connections share: %w", err)
	}
	return nil
}

// SharedMemory implements [vfs.FileSharedMemory].
func (f *file) SharedMemory() vfs.SharedMemory { return f.shm }

// SectorSize and DeviceCharacteristics return SQLite's defaults on Unix, which mean that a write does not damage adjacent bytes.
func (f *file) SectorSize() int { return 4096 }

func (f *file) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return vfs.IOCAP_POWERSAFE_OVERWRITE
}

// put writes b into data at an offset. Data grows if necessary.
func put(data, b []byte, at int64) []byte {
	if end := at + int64(len(b)); end > int64(len(data)) {
		data = resize(data, end)
	}
	copy(data[at:], b)
	return data
}

// resize truncates data, or extends it with zeros.
func resize(data []byte, size int64) []byte {
	if more := size - int64(len(data)); more > 0 {
		return append(data, make([]byte, more)...)
	}
	return data[:size]
}
