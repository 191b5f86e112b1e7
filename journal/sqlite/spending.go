package sqlite

import (
	"context"
	"database/sql"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/flight"
)

// Spent implements [log.Reader].
func (r reader) Spent(ctx context.Context, k flight.Key) (sum budget.Amount, err error) {
	_, err = all(ctx, r, func(rows *sql.Rows) (struct{}, error) {
		return struct{}{}, rows.Scan(&sum.USD, &sum.Tokens, &sum.Roundtrips)
	}, "SELECT usd, tokens, roundtrips FROM spending WHERE account = ? AND day = ?", k.Account, k.Day)
	return sum, err
}

// Spend implements [log.Tx].
func (t tx) Spend(k flight.Key, more budget.Amount) error {
	_, err := t.do(`INSERT INTO spending (account, day, usd, tokens, roundtrips) VALUES (?1, ?2, max(?3, 0.0), max(?4, 0), max(?5, 0))
		ON CONFLICT DO UPDATE SET usd = max(usd + ?3, 0.0), tokens = max(tokens + ?4, 0), roundtrips = max(roundtrips + ?5, 0)`,
		k.Account, k.Day, more.USD, more.Tokens, more.Roundtrips)
	return err
}

// ForgetSpending implements [log.Tx].
func (t tx) ForgetSpending(today, kept int64) error {
	_, err := t.do("DELETE FROM spending WHERE day < (SELECT max(day) FROM spending WHERE day < ?) - ?", today, kept)
	return err
}
