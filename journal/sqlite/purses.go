package sqlite

import (
	"context"
	"database/sql"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/purse"
)

// Purse implements [log.Reader].
func (r reader) Purse(ctx context.Context, k purse.Key) (used, held budget.Amount, err error) {
	_, err = all(ctx, r, func(rows *sql.Rows) (struct{}, error) {
		return struct{}{}, rows.Scan(&used.USD, &used.Tokens, &used.Roundtrips, &held.USD, &held.Tokens, &held.Roundtrips)
	}, "SELECT usd, tokens, roundtrips, held_usd, held_tokens, held_roundtrips FROM spending WHERE account = ? AND day = ?", k.Account, k.Day)
	return used, held, err
}

// Spend implements [log.Tx].
func (t tx) Spend(k purse.Key, used, held budget.Amount) error {
	_, err := t.do(`INSERT INTO spending (account, day, usd, tokens, roundtrips, held_usd, held_tokens, held_roundtrips)
		VALUES (?1, ?2, max(?3, 0.0), max(?4, 0), max(?5, 0), max(?6, 0.0), max(?7, 0), max(?8, 0)) ON CONFLICT DO UPDATE SET
		usd = max(usd + ?3, 0.0), tokens = max(tokens + ?4, 0), roundtrips = max(roundtrips + ?5, 0),
		held_usd = max(held_usd + ?6, 0.0), held_tokens = max(held_tokens + ?7, 0), held_roundtrips = max(held_roundtrips + ?8, 0)`,
		k.Account, k.Day, used.USD, used.Tokens, used.Roundtrips, held.USD, held.Tokens, held.Roundtrips)
	return err
}

// ForgetSpending implements [log.Tx].
func (t tx) ForgetSpending(today, kept int64) error {
	_, err := t.do("DELETE FROM spending WHERE day < (SELECT max(day) FROM spending WHERE day < ?) - ?", today, kept)
	return err
}

// Holds implements [log.Tx].
func (t tx) Holds(run int64, steps ...dag.ID) (found []purse.Hold, err error) {
	read := func(where string, args ...any) error {
		holds, err := all(background, t.reader, func(rows *sql.Rows) (purse.Hold, error) {
			h, step := purse.Hold{Run: run}, []byte(nil)
			err := rows.Scan(&step, &h.Account, &h.Day, &h.USD, &h.Tokens, &h.Roundtrips, &h.State)
			copy(h.Step[:], step)
			return h, err
		}, "SELECT step, account, day, usd, tokens, roundtrips, state FROM holds WHERE run = ?"+where, append([]any{run}, args...)...)
		found = append(found, holds...)
		return err
	}
	if len(steps) == 0 {
		return found, read("")
	}
	for _, step := range steps {
		if err := read(" AND step = ?", step[:]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Hold implements [log.Tx].
func (t tx) Hold(h purse.Hold) error {
	_, err := t.do("INSERT OR REPLACE INTO holds (run, step, account, day, usd, tokens, roundtrips, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", h.Run, h.Step[:], h.Account, h.Day, h.USD, h.Tokens, h.Roundtrips, h.State)
	return err
}

// Drop implements [log.Tx].
func (t tx) Drop(h purse.Hold) error {
	_, err := t.do("DELETE FROM holds WHERE run = ? AND step = ? AND account = ?", h.Run, h.Step[:], h.Account)
	return err
}
