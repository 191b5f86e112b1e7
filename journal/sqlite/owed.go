package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/fleet"
	"github.com/stonelayer/stone/journal/internal/log"
)

// Notes implements [log.Reader].
func (r reader) Notes(ctx context.Context, table log.Beside, run int64) ([]*log.Note, error) {
	return all(ctx, r, func(rows *sql.Rows) (*log.Note, error) {
		n := &log.Note{Run: run}
		return n, rows.Scan(&n.Name, &n.Open, &n.Data, &n.Seal)
	}, "SELECT name, open, data, seal FROM "+string(table)+" WHERE run = ? ORDER BY name", run)
}

// Outstanding implements [log.Reader].
func (r reader) Outstanding(ctx context.Context) ([]*log.Outstanding, error) {
	return all(ctx, r, func(rows *sql.Rows) (*log.Outstanding, error) {
		n := new(log.Outstanding)
		return n, rows.Scan(&n.Run, &n.Name, &n.Open, &n.Data, &n.Seal, &n.ID, &n.Info)
	}, "SELECT b.run, name, open, data, b.seal, id, info FROM batches b JOIN runs r ON r.run = b.run WHERE open")
}

// Due implements [log.Reader].
func (r reader) Due(ctx context.Context, now, far int64, but []string, most int) ([]*log.Notice, error) {
	without, err := json.Marshal(append([]string{}, but...)) // encodes no names as an empty list instead of null
	if err != nil {
		return nil, err
	}
	return all(ctx, r, func(rows *sql.Rows) (*log.Notice, error) {
		n := new(log.Notice)
		return n, rows.Scan(&n.Run, &n.Receiver, &n.Event, &n.Name, &n.At, &n.Next, &n.Tries, &n.Body, &n.ID)
	}, `SELECT o.run, receiver, event, name, at, next, tries, body, id FROM outbox o JOIN runs r ON r.run = o.run
		WHERE next > 0 AND (next <= ? OR next > ?) AND receiver NOT IN (SELECT value FROM json_each(?)) ORDER BY next LIMIT ?`, now, far, string(without), most)
}

// PutNote implements [log.Tx].
func (t tx) PutNote(table log.Beside, n *log.Note) error {
	_, err := t.do("INSERT OR REPLACE INTO "+string(table)+" (run, name, open, data, seal) VALUES (?, ?, ?, ?, ?)", n.Run, n.Name, n.Open, string(n.Data), n.Seal)
	return err
}

// DropReceiver implements [log.Tx].
func (t tx) DropReceiver(run int64, name string) error {
	_, err := t.do("DELETE FROM receivers WHERE run = ? AND name = ?", run, name)
	if err == nil {
		_, err = t.do("DELETE FROM outbox WHERE run = ? AND name = ?", run, name)
	}
	return err
}

// Owe implements [log.Tx].
func (t tx) Owe(n *log.Notice) error {
	_, err := t.do("INSERT OR IGNORE INTO outbox (run, receiver, event, name, at, next, tries) VALUES (?, ?, ?, ?, ?, ?, 0)", n.Run, n.Receiver, n.Event, n.Name, n.At, n.Next)
	return err
}

// OweReceivers implements [log.Tx].
func (t tx) OweReceivers(run int64, event string, at int64) error {
	_, err := t.do("INSERT OR IGNORE INTO outbox (run, receiver, event, name, at, next, tries) SELECT run, data ->> 'bound', ?2, name, ?3, ?3, 0 FROM receivers WHERE run = ?1", run, event, at)
	return err
}

// PutNotice implements [log.Tx].
func (t tx) PutNotice(n *log.Notice, tries int64) (bool, error) {
	result, err := t.do("UPDATE outbox SET next = ?, tries = ?, body = ? WHERE run = ? AND receiver = ? AND event = ? AND name = ? AND tries = ? AND next > 0",
		n.Next, n.Tries, blob(n.Body), n.Run, n.Receiver, n.Event, n.Name, tries)
	if err != nil {
		return false, err
	}
	changed, err := result.RowsAffected()
	return changed > 0, err
}

// Spent implements [log.Reader].
func (r reader) Spent(ctx context.Context, k fleet.Key) (sum budget.Amount, err error) {
	_, err = all(ctx, r, func(rows *sql.Rows) (struct{}, error) {
		return struct{}{}, rows.Scan(&sum.USD, &sum.Tokens, &sum.Roundtrips)
	}, "SELECT usd, tokens, roundtrips FROM spending WHERE account = ? AND day = ?", k.Account, k.Day)
	return sum, err
}

// Spend implements [log.Tx].
func (t tx) Spend(k fleet.Key, more budget.Amount) error {
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
