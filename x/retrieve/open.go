package retrieve

import (
	"context"
	"errors"
	"fmt"

	"github.com/stonelayer/stone/internal/redact"
)

// ErrNone is matched, in errors.Is, by the error of Open if the index does not exist.
var ErrNone = errors.New("no index")

// An Opener opens the index at an address. If the index does not exist and make is true, the Opener creates it; if make is false,
// it returns an error that matches ErrNone.
type Opener func(ctx context.Context, address string, make bool) (*Store, error)

var openers = map[string]Opener{}

// Register registers an Opener for addresses with the given scheme; "" is the scheme of files. Packages that implement a store
// call Register from init.
func Register(scheme string, o Opener) { openers[scheme] = o }

// Open opens the index in a file, or at an address such as "postgres://stone@db.example.com/docs". The program must import the
// package that implements the store: x/retrieve/sqlite for files, or x/retrieve/postgres.
func Open(ctx context.Context, address string, make bool) (*Store, error) {
	scheme, kind := "", "sqlite"
	if redact.IsDatabase(address) {
		scheme, kind = "postgres", "postgres"
	}
	o := openers[scheme]
	if o == nil {
		return nil, fmt.Errorf("this program cannot open such an index: import github.com/stonelayer/stone/x/retrieve/%s", kind)
	}
	return o(ctx, address, make)
}

// Claim prevents other processes from building the index until release is called, because they would pay for the same vectors. If
// another process is already building the index, Claim returns an error.
func (s *Store) Claim(ctx context.Context) (release func() error, err error) {
	if s.dialect.Claim == nil {
		return func() error { return nil }, nil
	}
	release, ours, err := s.dialect.Claim(ctx, s.db)
	switch {
	case err != nil:
		return nil, s.explain(err)
	case !ours:
		return nil, fmt.Errorf("another process is building the index %s: wait until it has finished", s.dialect.Name)
	}
	return release, nil
}
