// Package stores describes database servers' journals for package cli, which opens them without linking them.
package stores

import (
	"context"
	"iter"

	"github.com/stonelayer/stone/journal"
)

// Store is a journal as commands use it.
type Store interface {
	journal.Journal
	// Abandoned yields runs whose process died, as it finds them.
	Abandoned(ctx context.Context) iter.Seq2[journal.RunInfo, error]
	// Check reads everything, calls found with each damage, and counts runs and records.
	Check(ctx context.Context, found func(*journal.DamageError)) (runs, records int, err error)
	// Probe commits an empty transaction, and returns the version of the tables.
	Probe(ctx context.Context) (schema int, err error)
	Close() error
}

// Server is a kind of database that an address names.
type Server struct {
	// Open opens a database. Listen is its address for notifications, or "".
	Open func(ctx context.Context, address, listen string) (Store, error)
	// Secret returns the password that goes with an address, wherever it is kept.
	Secret func(address string) string
}

// Part makes a Server a part of a program, see cli.Part.
func (Server) Part() {}

// Imported is a part that its package registers when it is imported.
type Imported struct{}

// Part makes an Imported a part of a program, see cli.Part.
func (Imported) Part() {}
