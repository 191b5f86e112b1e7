// Package stores declares the interface of journals on database servers, so that package cli can open them without linking them.
package stores

import (
	"context"
	"iter"

	"github.com/stonelayer/stone/journal"
)

// Store is a journal with the additional methods that commands need.
type Store interface {
	journal.Journal
	// Abandoned yields runs whose process has died, as soon as it finds them.
	Abandoned(ctx context.Context) iter.Seq2[journal.RunInfo, error]
	// Check reads the whole journal, calls found for each damaged or missing record, and returns the number of runs and records.
	Check(ctx context.Context, found func(*journal.DamageError)) (runs, records int, err error)
	// Probe commits an empty transaction, and returns the version of the tables.
	Probe(ctx context.Context) (schema int, err error)
	Close() error
}

// Server is a kind of database that is opened by its address.
type Server struct {
	// Open opens a database. Listen is the address for notifications, or "".
	Open func(ctx context.Context, address, listen string) (Store, error)
	// Secret returns the password for an address, wherever it is stored.
	Secret func(address string) string
}

// Part makes a Server usable as a part of a program; see cli.Part.
func (Server) Part() {}

// Imported is the type of a part that is registered when its package is imported.
type Imported struct{}

// Part makes an Imported usable as a part of a program; see cli.Part.
func (Imported) Part() {}
