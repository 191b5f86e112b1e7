package powerloss

import (
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// locks are the locks on a file, as described at https://sqlite.org/lockingv3.html.
type locks struct {
	shared            int
	reserved, pending bool
}

// Lock implements [vfs.File].
func (f *file) Lock(level vfs.LockLevel) error {
	if f.lock >= level {
		return nil
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	l := &f.locks
	switch level {
	case vfs.LOCK_SHARED:
		if l.pending {
			return sqlite3.BUSY
		}
		l.shared++
	case vfs.LOCK_RESERVED:
		if l.reserved {
			return sqlite3.BUSY
		}
		l.reserved = true
	default:
		if f.lock < vfs.LOCK_PENDING {
			if l.pending {
				return sqlite3.BUSY
			}
			l.pending, f.lock = true, vfs.LOCK_PENDING
		}
		if l.shared > 1 {
			return sqlite3.BUSY
		}
	}
	f.lock = level
	return nil
}

// Unlock implements [vfs.File].
func (f *file) Unlock(level vfs.LockLevel) error {
	if f.lock <= level {
		return nil
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.lock >= vfs.LOCK_PENDING {
		f.locks.pending = false
	}
	if f.lock >= vfs.LOCK_RESERVED {
		f.locks.reserved = false
	}
	if level == vfs.LOCK_NONE {
		f.locks.shared--
	}
	f.lock = level
	return nil
}

// CheckReservedLock implements [vfs.File].
func (f *file) CheckReservedLock() (bool, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.locks.reserved, nil
}

// LockState implements [vfs.FileLockState].
func (f *file) LockState() vfs.LockLevel { return f.lock }
