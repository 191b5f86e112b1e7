package postgres

import (
	"context"
	"math"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/flight"
)

// Spent implements [log.Reader].
func (r reader) Spent(ctx context.Context, k flight.Key) (sum budget.Amount, err error) {
	_, err = rows(ctx, r, func(v [][]byte) struct{} {
		sum = budget.Amount{USD: math.Float64frombits(uint64(integer(v[0]))), Tokens: int(integer(v[1])), Roundtrips: int(integer(v[2]))}
		return struct{}{}
	}, "SELECT usd, tokens, roundtrips FROM stone.spending WHERE account = $1 AND day = $2", k.Account, k.Day)
	return sum, err
}

// Spend implements [log.Tx].
func (t *tx) Spend(k flight.Key, more budget.Amount) error {
	t.exec(`INSERT INTO stone.spending AS s (account, day, usd, tokens, roundtrips)
		VALUES ($1, $2, greatest($3::float8, 0), greatest($4::bigint, 0), greatest($5::bigint, 0)) ON CONFLICT (account, day) DO UPDATE SET
		usd = greatest(s.usd + $3, 0), tokens = greatest(s.tokens + $4, 0), roundtrips = greatest(s.roundtrips + $5, 0)`,
		k.Account, k.Day, more.USD, int64(more.Tokens), int64(more.Roundtrips))
	return nil
}

// ForgetSpending implements [log.Tx].
func (t *tx) ForgetSpending(today, kept int64) error {
	t.exec("DELETE FROM stone.spending WHERE day < (SELECT max(day) FROM stone.spending WHERE day < $1) - $2", today, kept)
	return nil
}
