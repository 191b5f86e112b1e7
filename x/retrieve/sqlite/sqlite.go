// Package sqlite stores an index of package retrieve in a file.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // database driver

	"github.com/stonelayer/stone/internal/flock"
	"github.com/stonelayer/stone/x/retrieve"
)

// schema creates the tables. Words are stored without the text, which is in pieces, and are stemmed as English (porter).
var schema = []string{
	`CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS documents (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, digest TEXT NOT NULL, meta TEXT NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS pieces (id INTEGER PRIMARY KEY, document INTEGER NOT NULL, digest TEXT NOT NULL, heading TEXT NOT NULL,
		text TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, page INTEGER NOT NULL)`,
	`CREATE INDEX IF NOT EXISTS pieces_document ON pieces (document)`,
	`CREATE INDEX IF NOT EXISTS pieces_digest ON pieces (digest)`,
	`CREATE TABLE IF NOT EXISTS vectors (digest TEXT PRIMARY KEY, vector BLOB NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS blocks (id INTEGER PRIMARY KEY AUTOINCREMENT, keys BLOB NOT NULL, codes BLOB NOT NULL)`,
	`CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (heading, text, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2')`,
	`CREATE TRIGGER IF NOT EXISTS pieces_remove AFTER DELETE ON pieces BEGIN DELETE FROM words WHERE rowid = old.id; END`,
	fmt.Sprintf("PRAGMA application_id = %d", application),
	fmt.Sprintf("PRAGMA user_version = %d", version),
}

const (
	application = 0x73746e69 // "stni" marks the file as an index
	version     = 1          // version of the tables
)

// query ranks by BM25. A word in a heading counts twice.
const query = `SELECT rowid, -bm25(words, 2.0, 1.0) FROM words WHERE words MATCH ? %s ORDER BY 2 DESC, 1 LIMIT ?`

// among contains a plus, because SQLite would otherwise search for the words again for each piece.
const among = ` AND +rowid IN (SELECT p.id FROM pieces p JOIN documents d ON d.id = p.document WHERE true %s)`

// ErrNone is matched, in errors.Is, by the error of Read if the file does not exist.
var ErrNone = retrieve.ErrNone

func init() {
	retrieve.Register("", func(_ context.Context, file string, make bool) (*retrieve.Store, error) {
		if make {
			return Open(file)
		}
		return Read(file)
	})
}

// Open opens the index in a file, and creates the file if it does not exist.
func Open(file string) (*retrieve.Store, error) {
	// Only the owner may read the file, because it contains the text of documents.
	if made, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		made.Close()
	}
	return open(file, true)
}

// Read opens the index in an existing file.
func Read(file string) (*retrieve.Store, error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNone, file)
	}
	return open(file, false)
}

func open(file string, change bool) (*retrieve.Store, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	if path = filepath.ToSlash(path); path[0] != '/' { // a path with a Windows drive
		path = "/" + path
	}
	options := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(20000)", "synchronous(FULL)", "cache_size(-16384)", "page_size(8192)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", file, err)
	}
	empty, err := check(db)
	if err != nil {
		err = fmt.Errorf("index %s: %w", file, err)
	} else if empty && !change {
		err = fmt.Errorf("%w in %s", ErrNone, file)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	d := retrieve.Dialect{
		Name: file, Words: query, Among: among, Meta: `EXISTS (SELECT 1 FROM json_each(d.meta) m WHERE m.key = ? AND m.value = ?)`,
		Claim:  func(context.Context, *sql.DB) (func() error, bool, error) { return claim(file) },
		Choose: words{few: 20_000}.choose, PutWords: `INSERT INTO words (rowid, heading, text) VALUES (?, ?, ?)`,
	}
	if empty {
		d.Schema = schema
	}
	s, err := retrieve.NewStore(context.Background(), db, d)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// check returns an error if the file belongs to another program or its tables have another format. It also reports whether the
// file is empty.
func check(db *sql.DB) (empty bool, err error) {
	var tables, app, made int
	err = db.QueryRow(`SELECT (SELECT count(*) FROM sqlite_schema), (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version)`).
		Scan(&tables, &app, &made)
	switch {
	case err != nil:
		return false, err
	case tables > 0 && app != application:
		return false, errors.New("it is a database of another program: name another file")
	case tables > 0 && made != version:
		return false, fmt.Errorf("it has schema %d, and this program knows %d: use the program that made it, or remove the file and build it anew", made, version)
	case tables == 0:
		_, err = db.Exec("PRAGMA journal_mode = WAL")
	}
	return tables == 0, err
}

// claim locks a separate file, because closing the index would release locks on its database.
func claim(file string) (release func() error, ours bool, err error) {
	f, err := os.OpenFile(file+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, err
	}
	switch ours, err = flock.TryLock(f); {
	case errors.Is(err, errors.ErrUnsupported):
		return f.Close, true, nil
	case err != nil || !ours:
		return nil, false, errors.Join(err, f.Close())
	}
	return f.Close, true, nil
}
