package retrieve

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
)

// State describes the contents of a Store.
type State struct {
	Documents int `json:"documents"`
	Pieces    int `json:"pieces"`
	// Bare is the number of texts without a vector.
	Bare int `json:"bare"`
	// Embedder is the provider and model that computed the vectors, or "" if there are none. Dimensions is the vectors' length.
	Embedder   string `json:"embedder,omitempty"`
	Dimensions int    `json:"dimensions,omitempty"`
	Folder     string `json:"folder,omitempty"` // see Index.Folder

	version string // changes whenever the vectors change
	about   string // centre of the codes, as base64
}

// State returns a summary of the store's contents.
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

// made returns the facts about an index that are stored in it.
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

// An EmbedderError reports that the vectors in an index were computed by another embedder.
type EmbedderError struct {
	Built, Asked string
}

// Error returns a text that says what is wrong and what to do.
func (e *EmbedderError) Error() string {
	return fmt.Sprintf("the index has vectors of %s, and the embedder is %s: vectors of two models cannot be compared; use the embedder of the index, or rebuild the vectors", e.Built, e.Asked)
}

// FailureKind returns "retrieve/embedder".
func (e *EmbedderError) FailureKind() string { return "retrieve/embedder" }

// folderError reports that the index belongs to another folder.
type folderError struct{ built, asked string }

func (e *folderError) Error() string {
	return fmt.Sprintf("the index is of the folder %s, seen from the index, whose documents would be removed: keep %s in another index", e.built, e.asked)
}

func (e *folderError) FailureKind() string { return "retrieve/folder" }
