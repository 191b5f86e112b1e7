package postgres

import (
	"context"

	"github.com/stonelayer/stone/internal/stores"
)

// Part lets a program keep runs in PostgreSQL, see cli.Part.
var Part = stores.Server{
	Open: func(ctx context.Context, address, listen string) (stores.Store, error) {
		db, err := Open(ctx, address, Options{Listen: listen})
		if err != nil {
			return nil, err
		}
		return db, nil
	},
	Secret: func(address string) string {
		config, err := parse(address)
		if err != nil {
			return "" // it opens nothing
		}
		return config.Password
	},
}
