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
)

// A Store contains documents, their pieces and the pieces' vectors. Packages x/retrieve/sqlite and x/retrieve/postgres open
// stores. A Store is safe for concurrent use, even by several processes. Close it after use.
type Store struct {
	db      *sql.DB
	dialect Dialect
	codes   codes

	mu    sync.Mutex
	queue []*waiting // changes for the next transaction
	busy  bool
}

// A Dialect describes a database. Packages that implement a store pass it to NewStore. In queries, parameters are written as ?.
type Dialect struct {
	Name string // for errors
	// Schema creates the tables about, documents, pieces, vectors and blocks, unless they exist. Nil means that the tables exist.
	Schema []string
	// Numbered means that the database requires parameters in the form $1.
	Numbered bool
	// Lock is a statement that makes a transaction wait for other transactions that change the store.
	Lock string
	// PutWords adds the words of a piece. Its parameters are the id, and the heading and the text in a form whose words the
	// database can distinguish.
	PutWords string
	// Remote means that the database is reached over the network.
	Remote bool
	// Claim implements Store.Claim. The result ours reports whether the claim succeeded. If Claim is nil, Store.Claim does
	// nothing.
	Claim func(ctx context.Context, db *sql.DB) (release func() error, ours bool, err error)
	// Words selects the ids and scores of pieces that match a text, best first. Each %s is replaced by Among, or by nothing. The
	// parameters are the text, for each %s the parameters of its conditions, and the number of rows.
	Words string
	// Among is a condition, preceded by AND, that a piece belongs to a document d. Its %s is replaced by conditions on d, each
	// preceded by AND.
	Among string
	// Meta is a condition that d.meta, a JSON object, contains a value. Its parameters are the key and the value.
	Meta string
	// Choose returns texts for Words that match any of the words. Words consist of letters, digits and marks. A text may leave
	// out pieces: pieces with scores up to least, or pieces that are too many to be ranked. The first text that finds n pieces
	// with scores of at least least is used, or else the last text.
	Choose func(ctx context.Context, db *sql.DB, words []string, n int) (texts []string, least float64, err error)
}

// mostConnections is the maximum number of database connections of concurrent searches. With SQLite, it also limits their memory.
const mostConnections = 16

// NewStore returns a Store that uses the database db, after creating any missing tables. Closing the Store closes db.
func NewStore(ctx context.Context, db *sql.DB, d Dialect) (*Store, error) {
	db.SetMaxOpenConns(mostConnections) // no operation waits for a second connection while it holds one
	s := &Store{db: db, dialect: d, codes: codes{room: mostCodes, turn: make(chan struct{}, 1)}}
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

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

func (s *Store) explain(err error) error {
	if err == nil || s.dialect.Name == "" {
		return err
	}
	return fmt.Errorf("index %s: %w", s.dialect.Name, err)
}

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

// bare returns the sorted digests of texts that have no vector. If among is given, only these digests are considered, and their
// texts are returned, too.
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
	folder   string     // "" means that the folder does not change
	put      []document // documents to add; they replace documents of the same names
	remove   []string   // names of documents to remove
	embedder string
	vectors  map[string][]float32 // vectors to add, by the digests of their texts
	sweep    bool                 // finally, remove vectors without a piece
}

type waiting struct {
	change
	done chan error
}

// change makes a change durable. Concurrent changes share a transaction, because each transaction requires a write to disk.
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
	ctx := context.Background() // a change for which nobody is waiting any more does no harm
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
			if errors.As(err, new(*EmbedderError)) { // one of the changes caused the error
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
	defer tx.Rollback() // does nothing after Commit
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

// note stores a fact about the index.
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
		do(`DELETE FROM blocks`)
		do(`DELETE FROM about WHERE name NOT IN ('folder', 'version', 'format')`)
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
		var swept bool
		swept, err = s.sweep(ctx, tx)
		changed = changed || swept
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
	insert, err := tx.PrepareContext(ctx, s.bind(`INSERT INTO pieces (document, digest, heading, text, first, last, page) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`))
	if err != nil {
		return err
	}
	defer insert.Close()
	words, err := tx.PrepareContext(ctx, s.bind(s.dialect.PutWords))
	if err != nil {
		return err
	}
	defer words.Close()
	for i := range d.pieces {
		p := &d.pieces[i]
		var piece int64
		if err := insert.QueryRowContext(ctx, id, p.digest(), p.Heading, p.Text, p.From, p.To, p.Page).Scan(&piece); err != nil {
			return err
		}
		if _, err := words.ExecContext(ctx, piece, indexable(p.Heading), indexable(p.Text)); err != nil {
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
	var fresh block
	for _, digest := range slices.Sorted(maps.Keys(raws)) {
		done, err := tx.ExecContext(ctx, s.bind(`INSERT INTO vectors (digest, vector) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING`), digest, raws[digest])
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		k, failed := keyOf([]byte(digest))
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		if n > 0 {
			fresh.add(k, codeOf(units[digest], centre))
		}
	}
	if err := fresh.store(ctx, s, tx); err != nil {
		return err
	}
	for name, value := range map[string]string{"embedder": c.embedder, "dimensions": strconv.Itoa(dimensions), "centre": st.about} {
		if _, err := tx.ExecContext(ctx, s.bind(note), name, value); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes vectors without a piece, and their codes.
func (s *Store) sweep(ctx context.Context, tx *sql.Tx) (changed bool, err error) {
	rows, err := tx.QueryContext(ctx, `DELETE FROM vectors WHERE NOT EXISTS (SELECT 1 FROM pieces p WHERE p.digest = vectors.digest) RETURNING digest`)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	gone := map[key]bool{}
	var digest sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&digest); err != nil {
			return false, err
		}
		k, err := keyOf(digest)
		if err != nil {
			return false, err
		}
		gone[k] = true
	}
	if err := rows.Err(); err != nil {
		return false, err
	}
	return len(gone) > 0, s.compact(ctx, tx, gone)
}

// bind converts the parameters of a query to the database's notation.
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
