package postgres

import (
	"context"
	"math"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/fleet"
	"github.com/stonelayer/stone/journal/internal/log"
)

// Notes implements [log.Reader].
func (r reader) Notes(ctx context.Context, table log.Beside, run int64) ([]*log.Note, error) {
	return rows(ctx, r, func(v [][]byte) *log.Note {
		return &log.Note{Run: run, Name: string(v[0]), Open: v[1][0] == 1, Data: clone(v[2]), Seal: clone(v[3])}
	}, "SELECT name, open, data, seal FROM stone."+string(table)+" WHERE run = $1 ORDER BY name", run)
}

// Outstanding implements [log.Reader].
func (r reader) Outstanding(ctx context.Context) ([]*log.Outstanding, error) {
	return rows(ctx, r, func(v [][]byte) *log.Outstanding {
		note := log.Note{Run: integer(v[0]), Name: string(v[1]), Open: v[2][0] == 1, Data: clone(v[3]), Seal: clone(v[4])}
		return &log.Outstanding{Note: note, ID: string(v[5]), Info: clone(v[6])}
	}, "SELECT b.run, name, open, data, b.seal, id, info FROM stone.batches b JOIN stone.runs r ON r.run = b.run WHERE open")
}

// Due implements [log.Reader].
func (r reader) Due(ctx context.Context, now, far int64, but []string, most int) ([]*log.Notice, error) {
	return rows(ctx, r, func(v [][]byte) *log.Notice {
		return &log.Notice{Run: integer(v[0]), Receiver: string(v[1]), Event: string(v[2]), Name: string(v[3]), At: integer(v[4]), Next: integer(v[5]), Tries: integer(v[6]), Body: clone(v[7]), ID: string(v[8])}
	}, `SELECT o.run, receiver, event, name, at, next, tries, body, id FROM stone.outbox o JOIN stone.runs r ON r.run = o.run
		WHERE next > 0 AND (next <= $1 OR next > $2) AND NOT receiver = ANY($3::text[]) ORDER BY next LIMIT $4`, now, far, textsOf(but), int64(most))
}

// PutNote implements [log.Tx].
func (t *tx) PutNote(table log.Beside, n *log.Note) error {
	t.exec("INSERT INTO stone."+string(table)+" (run, name, open, data, seal) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (run, name) DO UPDATE SET open = $3, data = $4, seal = $5",
		n.Run, n.Name, n.Open, string(n.Data), n.Seal)
	return nil
}

// DropReceiver implements [log.Tx].
func (t *tx) DropReceiver(run int64, name string) error {
	t.exec("DELETE FROM stone.receivers WHERE run = $1 AND name = $2", run, name)
	t.exec("DELETE FROM stone.outbox WHERE run = $1 AND name = $2", run, name)
	return nil
}

// Owe implements [log.Tx].
func (t *tx) Owe(n *log.Notice) error {
	t.exec("INSERT INTO stone.outbox (run, receiver, event, name, at, next, tries) VALUES ($1, $2, $3, $4, $5, $6, 0) ON CONFLICT DO NOTHING",
		n.Run, n.Receiver, n.Event, n.Name, n.At, n.Next)
	return nil
}

// OweReceivers implements [log.Tx].
func (t *tx) OweReceivers(run int64, event string, at int64) error {
	t.exec("INSERT INTO stone.outbox (run, receiver, event, name, at, next, tries) SELECT run, data::json ->> 'bound', $2::text, name, $3::bigint, $3, 0 FROM stone.receivers WHERE run = $1 ON CONFLICT DO NOTHING", run, event, at)
	return nil
}

// PutNotice implements [log.Tx].
func (t *tx) PutNotice(n *log.Notice, tries int64) (bool, error) {
	found, err := rows(background, t.reader, func([][]byte) bool { return true },
		"UPDATE stone.outbox SET next = $1, tries = $2, body = $3 WHERE run = $4 AND receiver = $5 AND event = $6 AND name = $7 AND tries = $8 AND next > 0 RETURNING run",
		n.Next, n.Tries, n.Body, n.Run, n.Receiver, n.Event, n.Name, tries)
	return len(found) > 0, err
}

// Spent implements [log.Reader].
func (r reader) Spent(ctx context.Context, k fleet.Key) (sum budget.Amount, err error) {
	_, err = rows(ctx, r, func(v [][]byte) struct{} {
		sum = budget.Amount{USD: math.Float64frombits(uint64(integer(v[0]))), Tokens: int(integer(v[1])), Roundtrips: int(integer(v[2]))}
		return struct{}{}
	}, "SELECT usd, tokens, roundtrips FROM stone.spending WHERE account = $1 AND day = $2", k.Account, k.Day)
	return sum, err
}

// Spend implements [log.Tx].
func (t *tx) Spend(k fleet.Key, more budget.Amount) error {
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
