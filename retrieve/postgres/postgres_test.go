package postgres_test

import (
	"context"
	"testing"

	"github.com/stonelayer/stone/internal/pgtest"
	"github.com/stonelayer/stone/retrieve"
	"github.com/stonelayer/stone/retrieve/internal/storetest"
	"github.com/stonelayer/stone/retrieve/postgres"
)

func TestStore(t *testing.T) {
	storetest.Test(t, func(t *testing.T) func() (*retrieve.Store, error) {
		address := pgtest.Database(t)
		return func() (*retrieve.Store, error) { return postgres.Open(context.Background(), address) }
	})
}
