// Package lib contains the SQLite result codes that journal/sqlite uses.
package lib

// The codes are listed at https://sqlite.org/rescode.html.
const (
	SQLITE_BUSY     = 5
	SQLITE_LOCKED   = 6
	SQLITE_READONLY = 8
	SQLITE_IOERR    = 10
	SQLITE_CORRUPT  = 11
	SQLITE_FULL     = 13
	SQLITE_CANTOPEN = 14
	SQLITE_NOTADB   = 26
)
