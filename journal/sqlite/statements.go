package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// statements executes SQL on a connection or a pool, and keeps prepared statements, because SQLite needs three times as long to
// parse a statement as to find the row of a run.
type statements struct {
	on interface {
		PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	}
	mu       sync.Mutex
	prepared map[string]*sql.Stmt
}

// mostPrepared is the maximum number of prepared statements. There are about 30 frequent statements, which are prepared first; the
// number of different statements for lists and pages is not limited.
const mostPrepared = 64

// of returns the prepared statement for a text, or nil if there already are too many.
func (s *statements) of(ctx context.Context, text string) (*sql.Stmt, error) {
	s.mu.Lock()
	stmt, room := s.prepared[text], len(s.prepared) < mostPrepared
	s.mu.Unlock()
	if stmt != nil || !room {
		return stmt, nil
	}
	fresh, err := s.on.PrepareContext(ctx, text) // may wait for a connection
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt := s.prepared[text]; stmt != nil {
		return stmt, fresh.Close()
	}
	if s.prepared == nil {
		s.prepared = map[string]*sql.Stmt{}
	}
	s.prepared[text] = fresh
	return fresh, nil
}

func (s *statements) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	stmt, err := s.of(ctx, text)
	switch {
	case err != nil:
		return nil, err
	case stmt == nil:
		return s.on.QueryContext(ctx, text, args...)
	}
	return stmt.QueryContext(ctx, args...)
}

func (s *statements) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, stmt := range s.prepared {
		errs = append(errs, stmt.Close())
	}
	s.prepared = nil
	return errors.Join(errs...)
}
