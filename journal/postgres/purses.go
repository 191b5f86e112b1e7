package postgres

import (
	"context"
	"math"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/purse"
)

// Purse implements [log.Reader].
func (r reader) Purse(ctx context.Context, k purse.Key) (used, held budget.Amount, err error) {
	return r.purse(ctx, k, "")
}

func (r reader) purse(ctx context.Context, k purse.Key, lock string) (used, held budget.Amount, err error) {
	_, err = rows(ctx, r, func(v [][]byte) struct{} {
		used, held = amount(v), amount(v[3:])
		return struct{}{}
	}, "SELECT usd, tokens, roundtrips, held_usd, held_tokens, held_roundtrips FROM stone.spending WHERE account = $1 AND day = $2"+lock, k.Account, k.Day)
	return used, held, err
}

// amount reads three columns.
func amount(v [][]byte) budget.Amount {
	return budget.Amount{USD: math.Float64frombits(uint64(integer(v[0]))), Tokens: int(integer(v[1])), Roundtrips: int(integer(v[2]))}
}

// Purse implements [log.Reader]. A row that does not exist cannot be locked, so it is made first.
func (t *tx) Purse(ctx context.Context, k purse.Key) (used, held budget.Amount, err error) {
	t.exec("INSERT INTO stone.spending (account, day, usd) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING", k.Account, k.Day)
	return t.purse(ctx, k, " FOR UPDATE")
}

// Spend implements [log.Tx].
func (t *tx) Spend(k purse.Key, used, held budget.Amount) error {
	t.exec(`INSERT INTO stone.spending AS s (account, day, usd, tokens, roundtrips, held_usd, held_tokens, held_roundtrips)
		VALUES ($1, $2, greatest($3::float8, 0), greatest($4::bigint, 0), greatest($5::bigint, 0), greatest($6::float8, 0), greatest($7::bigint, 0), greatest($8::bigint, 0))
		ON CONFLICT (account, day) DO UPDATE SET
		usd = greatest(s.usd + $3, 0), tokens = greatest(s.tokens + $4, 0), roundtrips = greatest(s.roundtrips + $5, 0),
		held_usd = greatest(s.held_usd + $6, 0), held_tokens = greatest(s.held_tokens + $7, 0), held_roundtrips = greatest(s.held_roundtrips + $8, 0)`,
		k.Account, k.Day, used.USD, int64(used.Tokens), int64(used.Roundtrips), held.USD, int64(held.Tokens), int64(held.Roundtrips))
	return nil
}

// ForgetSpending implements [log.Tx].
func (t *tx) ForgetSpending(today, kept int64) error {
	t.exec("DELETE FROM stone.spending WHERE day < (SELECT max(day) FROM stone.spending WHERE day < $1) - $2", today, kept)
	return nil
}

// Holds implements [log.Tx].
func (t *tx) Holds(run int64, steps ...dag.ID) ([]purse.Hold, error) {
	text, args := "SELECT step, account, day, usd, tokens, roundtrips, state FROM stone.holds WHERE run = $1", []any{run}
	if len(steps) > 0 {
		var of blobs
		for _, step := range steps {
			of = append(of, step[:])
		}
		text, args = text+" AND step = ANY($2::bytea[])", append(args, of)
	}
	return rows(background, t.reader, func(v [][]byte) purse.Hold {
		h := purse.Hold{Run: run, Key: purse.Key{Account: string(v[1]), Day: integer(v[2])}, Amount: amount(v[3:]), State: purse.State(integer(v[6]))}
		copy(h.Step[:], v[0])
		return h
	}, text, args...)
}

// Hold implements [log.Tx].
func (t *tx) Hold(h purse.Hold) error {
	t.exec(`INSERT INTO stone.holds VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (run, step, account) DO UPDATE SET day = $4, usd = $5, tokens = $6, roundtrips = $7, state = $8`,
		h.Run, h.Step[:], h.Account, h.Day, h.USD, int64(h.Tokens), int64(h.Roundtrips), int64(h.State))
	return nil
}

// Drop implements [log.Tx].
func (t *tx) Drop(h purse.Hold) error {
	t.exec("DELETE FROM stone.holds WHERE run = $1 AND step = $2 AND account = $3", h.Run, h.Step[:], h.Account)
	return nil
}
