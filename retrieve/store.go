package retrieve

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stonelayer/stone/internal/redact"
)

// A Store keeps documents, their pieces and the vectors of these. Packages retrieve/sqlite and
// retrieve/postgres open one. It is safe for concurrent use, also by several processes. Close it after use.
type Store struct {
	db      *sql.DB
	dialect Dialect
	codes   codes

	mu    sync.Mutex
	queue []*waiting // changes for the next transaction
	busy  bool
}

// A Dialect describes a database to NewStore, for packages that open a Store. Queries write parameters as ?.
type Dialect struct {
	Name string // for errors
	// Schema makes the tables about, documents, pieces, vectors and codes, unless they exist. Nil means that they do.
	Schema []string
	// Numbered means that parameters are written as $1.
	Numbered bool
	// Lock makes a transaction wait for others that change the store.
	Lock string
	// Remote means that the database is reached over the network.
	Remote bool
	// Claim implements Store.Claim. Ours reports whether the index was claimed.
	Claim func(ctx context.Context, db *sql.DB) (release func() error, ours bool, err error)
	// Words selects ids and scores of pieces that match a text, best first. %s stands for further conditions on pieces p
	// and documents d. Its parameters are the text, those of the conditions, and the number of rows.
	Words string
	// Meta is the condition that d.meta, a JSON object, has a value. Its parameters are the key and the value.
	Meta string
	// Expression returns the text parameter of Words that matches any of the words. They consist of letters, digits and
	// marks.
	Expression func(words []string) string
}

// NewStore returns a Store over a database, and creates missing tables. Close closes db.
func NewStore(ctx context.Context, db *sql.DB, d Dialect) (*Store, error) {
	s := &Store{db: db, dialect: d, codes: codes{room: mostCodes}}
	if len(d.Schema) == 0 {
		return s, nil
	}
	err := s.transact(ctx, func(tx *sql.Tx) error {
		for _, statement := range d.Schema {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, s.explain(err)
	}
	return s, nil
}

// ErrNone matches the error of Open for an index that does not exist.
var ErrNone = errors.New("no index")

// An Opener opens the index at an address. If there is none, it makes it, or returns an error that matches ErrNone.
type Opener func(ctx context.Context, address string, make bool) (*Store, error)

var openers = map[string]Opener{}

// Register makes a kind of index known to Open, by the scheme of its addresses; "" is the scheme of files. Packages
// with stores call it from init.
func Register(scheme string, o Opener) { openers[scheme] = o }

// Open opens the index in a file, or at an address such as "postgres://stone@db.example.com/docs". The program must
// import the package of its kind: retrieve/sqlite for files, or retrieve/postgres.
func Open(ctx context.Context, address string, make bool) (*Store, error) {
	scheme, kind := "", "sqlite"
	if redact.IsDatabase(address) {
		scheme, kind = "postgres", "postgres"
	}
	o := openers[scheme]
	if o == nil {
		return nil, fmt.Errorf("this program has no such indexes: import github.com/stonelayer/stone/retrieve/%s", kind)
	}
	return o(ctx, address, make)
}

// Claim keeps other processes from building the index, which would pay for the same vectors, until release is called.
// The error says that another process builds it.
func (s *Store) Claim(ctx context.Context) (release func() error, err error) {
	release, ours, err := s.dialect.Claim(ctx, s.db)
	switch {
	case err != nil:
		return nil, s.explain(err)
	case !ours:
		return nil, fmt.Errorf("another process builds the index %s: wait until it has ended", s.dialect.Name)
	}
	return release, nil
}

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

func (s *Store) explain(err error) error {
	if err == nil || s.dialect.Name == "" {
		return err
	}
	return fmt.Errorf("index %s: %w", s.dialect.Name, err)
}

// State describes the contents of a Store.
type State struct {
	Documents int `json:"documents"`
	Pieces    int `json:"pieces"`
	// Bare is the number of texts without a vector.
	Bare int `json:"bare"`
	// Embedder is the provider and model of the vectors, "" if there are none; Dimensions is their length.
	Embedder   string `json:"embedder,omitempty"`
	Dimensions int    `json:"dimensions,omitempty"`
	Folder     string `json:"folder,omitempty"` // see Index.Folder

	version string // changes with the vectors
	about   string // the centre of the codes, as base64 of its bytes
}

// State returns what the store contains.
func (s *Store) State(ctx context.Context) (st State, err error) {
	row := s.db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM pieces),
		(SELECT count(DISTINCT p.digest) FROM pieces p WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.digest = p.digest))`)
	if err = row.Scan(&st.Documents, &st.Pieces, &st.Bare); err != nil {
		return st, s.explain(err)
	}
	made, err := s.made(ctx, s.db)
	st.Embedder, st.Dimensions, st.Folder = made.Embedder, made.Dimensions, made.Folder
	return st, s.explain(err)
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// made returns the facts that are kept about an index.
func (s *Store) made(ctx context.Context, q querier) (st State, err error) {
	rows, err := q.QueryContext(ctx, `SELECT name, value FROM about`)
	if err != nil {
		return st, err
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return st, err
		}
		switch name {
		case "embedder":
			st.Embedder = value
		case "dimensions":
			st.Dimensions, err = strconv.Atoi(value)
		case "folder":
			st.Folder = value
		case "centre":
			st.about = value
		case "version":
			st.version = value
		}
		if err != nil {
			return st, err
		}
	}
	return st, rows.Err()
}

// An EmbedderError reports an index whose vectors another embedder made.
type EmbedderError struct {
	Built, Asked string
}

// Error says what to do.
func (e *EmbedderError) Error() string {
	return fmt.Sprintf("the index has vectors of %s, and the embedder is %s: vectors of two models cannot be compared; use the embedder of the index, or rebuild the vectors", e.Built, e.Asked)
}

// FailureKind returns "retrieve/embedder".
func (e *EmbedderError) FailureKind() string { return "retrieve/embedder" }

// folderError reports an index of another folder.
type folderError struct{ built, asked string }

func (e *folderError) Error() string {
	return fmt.Sprintf("the index is of the folder %s, whose documents would be removed: keep %s in another index", e.built, e.asked)
}

func (e *folderError) FailureKind() string { return "retrieve/folder" }

// documents returns the digests of all documents, by their names.
func (s *Store) documents(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	err := s.each(ctx, func(rows *sql.Rows) error {
		var name, digest string
		err := rows.Scan(&name, &digest)
		all[name] = digest
		return err
	}, `SELECT name, digest FROM documents`)
	return all, s.explain(err)
}

// bare returns the sorted digests of texts without a vector. Given some digests, it considers only those and returns their
// texts, too.
func (s *Store) bare(ctx context.Context, among []string) (digests, texts []string, err error) {
	query := `SELECT DISTINCT p.digest, '', '' FROM pieces p`
	if among != nil {
		query = `SELECT p.digest, min(p.heading), min(p.text) FROM pieces p`
	}
	query += ` WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.digest = p.digest)`
	if among != nil {
		query += ` AND p.digest IN (` + marks(len(among)) + `) GROUP BY p.digest`
	}
	err = s.each(ctx, func(rows *sql.Rows) error {
		var digest string
		var p Passage
		err := rows.Scan(&digest, &p.Heading, &p.Text)
		digests, texts = append(digests, digest), append(texts, p.embedded())
		return err
	}, query+` ORDER BY 1`, anys(among)...)
	return digests, texts, s.explain(err)
}

// change is an idempotent change of a store.
type change struct {
	reset    bool       // first remove all vectors
	folder   string     // "" leaves it as it is
	put      []document // replaces documents of these names
	remove   []string   // names of documents
	embedder string
	vectors  map[string][]float32 // by the digests of their texts
	sweep    bool                 // at last remove vectors without a piece
}

type waiting struct {
	change
	done chan error
}

// change makes a change durable. Concurrent changes share a transaction, because each transaction costs a write to disk.
func (s *Store) change(ctx context.Context, c change) error {
	w := &waiting{c, make(chan error, 1)}
	s.mu.Lock()
	s.queue = append(s.queue, w)
	if !s.busy {
		s.busy = true
		go s.drain()
	}
	s.mu.Unlock()
	select {
	case err := <-w.done:
		return s.explain(err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Store) drain() {
	ctx := context.Background() // a change that nobody waits for any more does no harm
	for {
		s.mu.Lock()
		all := s.queue
		s.queue, s.busy = nil, len(all) > 0
		s.mu.Unlock()
		if len(all) == 0 {
			return
		}
		err := s.apply(ctx, all)
		for _, w := range all {
			if errors.As(err, new(*EmbedderError)) { // of one of them
				w.done <- s.apply(ctx, []*waiting{w})
			} else {
				w.done <- err
			}
		}
	}
}

func (s *Store) apply(ctx context.Context, all []*waiting) error {
	return s.transact(ctx, func(tx *sql.Tx) error {
		for _, w := range all {
			if err := s.write(ctx, tx, &w.change); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) transact(ctx context.Context, work func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // which does nothing after Commit
	if s.dialect.Lock != "" {
		if _, err := tx.ExecContext(ctx, s.dialect.Lock); err != nil {
			return err
		}
	}
	if err := work(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// note keeps a fact about the index.
const note = `INSERT INTO about (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`

func (s *Store) write(ctx context.Context, tx *sql.Tx, c *change) (err error) {
	changed := c.reset || len(c.vectors) > 0
	do := func(query string, args ...any) {
		if err == nil {
			_, err = tx.ExecContext(ctx, s.bind(query), args...)
		}
	}
	if c.reset {
		do(`DELETE FROM vectors`)
		do(`DELETE FROM codes`)
		do(`DELETE FROM about WHERE name NOT IN ('folder', 'version')`)
	}
	if c.folder != "" {
		do(note, "folder", c.folder)
	}
	for _, name := range c.remove {
		do(`DELETE FROM pieces WHERE document IN (SELECT id FROM documents WHERE name = ?)`, name)
		do(`DELETE FROM documents WHERE name = ?`, name)
	}
	for i := range c.put {
		if err == nil {
			err = s.put(ctx, tx, &c.put[i])
		}
	}
	if len(c.vectors) > 0 && err == nil {
		err = s.putVectors(ctx, tx, c)
	}
	if c.sweep && err == nil {
		var gone sql.Result
		if gone, err = tx.ExecContext(ctx, `DELETE FROM vectors WHERE NOT EXISTS (SELECT 1 FROM pieces p WHERE p.digest = vectors.digest)`); err == nil {
			n, failed := gone.RowsAffected()
			changed, err = changed || n > 0, failed
		}
		do(`DELETE FROM codes WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.digest = codes.digest)`)
	}
	if changed {
		do(`INSERT INTO about (name, value) VALUES ('version', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(about.value AS INTEGER) + 1 AS TEXT)`)
	}
	return err
}

func (s *Store) put(ctx context.Context, tx *sql.Tx, d *document) error {
	meta, err := json.Marshal(d.meta)
	if err != nil {
		return err
	}
	var id int64
	err = tx.QueryRowContext(ctx, s.bind(`INSERT INTO documents (name, digest, meta) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, meta = excluded.meta RETURNING id`), d.name, d.digest, string(meta)).Scan(&id)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, s.bind(`DELETE FROM pieces WHERE document = ?`), id); err != nil {
		return err
	}
	insert, err := tx.PrepareContext(ctx, s.bind(`INSERT INTO pieces (document, digest, heading, text, first, last, page) VALUES (?, ?, ?, ?, ?, ?, ?)`))
	if err != nil {
		return err
	}
	defer insert.Close()
	for i := range d.pieces {
		p := &d.pieces[i]
		if _, err := insert.ExecContext(ctx, id, p.digest(), p.Heading, p.Text, p.From, p.To, p.Page); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) putVectors(ctx context.Context, tx *sql.Tx, c *change) error {
	st, err := s.made(ctx, tx)
	if err != nil {
		return err
	}
	built, dimensions := st.Embedder, st.Dimensions
	if built != "" && built != c.embedder {
		return &EmbedderError{built, c.embedder}
	}
	raws, units := map[string][]byte{}, map[string][]float32{}
	for digest, v := range c.vectors {
		if dimensions == 0 {
			dimensions = len(v)
		}
		if len(v) != dimensions {
			return &EmbedderError{fmt.Sprintf("%s with %d dimensions", built, dimensions), fmt.Sprintf("%s with %d", c.embedder, len(v))}
		}
		raws[digest], units[digest] = encode(v)
	}
	if st.Dimensions = dimensions; built == "" {
		raw := appendFloats(nil, centreOf(slices.Collect(maps.Values(units))))
		st.about = base64.StdEncoding.EncodeToString(raw)
	}
	centre, err := st.centre()
	if err != nil {
		return err
	}
	for digest, raw := range raws {
		_, err := tx.ExecContext(ctx, s.bind(`INSERT INTO vectors (digest, vector) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING`), digest, raw)
		if err == nil {
			_, err = tx.ExecContext(ctx, s.bind(`INSERT INTO codes (digest, code) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING`), digest, codeOf(units[digest], centre))
		}
		if err != nil {
			return err
		}
	}
	for name, value := range map[string]string{"embedder": c.embedder, "dimensions": strconv.Itoa(dimensions), "centre": st.about} {
		if _, err := tx.ExecContext(ctx, s.bind(note), name, value); err != nil {
			return err
		}
	}
	return nil
}

// bind writes the parameters of a query as the database wants them.
func (s *Store) bind(query string) string {
	if !s.dialect.Numbered {
		return query
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(query, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

func (s *Store) each(ctx context.Context, row func(*sql.Rows) error, query string, args ...any) error {
	rows, err := s.db.QueryContext(ctx, s.bind(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

func anys[T any](all []T) (list []any) {
	for _, v := range all {
		list = append(list, v)
	}
	return list
}
