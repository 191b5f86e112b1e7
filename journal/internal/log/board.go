package log

import (
	"context"
	"crypto/sha256"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/journal"
)

// The board of a run is a run without a holder, whose records are the items: Path is the key
// and Content the data. Any Journal may write it, so its records are numbered by its Tip,
// within the transaction.

// onBoard ends the id of a board, and boardOwner is its owner.
const (
	onBoard    = "\x1fboard"
	boardOwner = "board"
)

func isBoard(id string) bool { return strings.HasSuffix(id, onBoard) }

// Post implements [journal.Board].
func (j *Journal) Post(_ context.Context, run string, items ...journal.Item) ([]journal.Item, error) {
	rows := make([]*Row, len(items))
	for i, item := range items {
		digest := sha256.Sum256([]byte(item.Key))
		rows[i] = &Row{Digest: digest[:], Path: item.Key, Head: strconv.AppendInt(nil, j.now().UnixMilli(), 10), Content: item.Data}
		rows[i].seal()
	}
	if len(rows) == 0 {
		return nil, nil
	}
	holds := j.holding(run) != nil
	var kept []*Row // the writer owns this variable until it has answered
	err := j.out.write(&write{also: run + onBoard, stays: true, paid: true, do: func(t *transaction) (err error) {
		kept, err = t.post(run, rows, holds)
		return err
	}})
	if err != nil {
		return nil, err
	}
	out := make([]journal.Item, len(kept))
	for i, row := range kept {
		out[i] = itemOf(row)
	}
	return out, nil
}

func itemOf(r *Row) journal.Item {
	return journal.Item{Key: r.Path, Data: r.Content, Seq: r.Seq}
}

// post appends the rows whose keys the board does not have, and returns the rows that it has
// then.
func (t *transaction) post(run string, rows []*Row, holds bool) ([]*Row, error) {
	board, err := t.board(run, holds)
	if err != nil {
		return nil, err
	}
	old, err := t.posted(board.Row, rows)
	if err != nil {
		return nil, err
	}
	kept := make([]*Row, len(rows))
	var fresh []*Row
	for i, row := range rows {
		if kept[i] = old[row.Path]; kept[i] == nil {
			board.Tip++
			row.Run, row.Seq = board.Row, board.Tip
			kept[i], fresh = row, append(fresh, row)
		}
	}
	if len(fresh) == 0 {
		return kept, nil
	}
	if err := t.Append(fresh); err != nil {
		return nil, err
	}
	return kept, t.Put(board)
}

// board returns the board of a run, which no other transaction changes until this one ends.
// If the run has none, it makes one for the holder.
func (t *transaction) board(run string, holds bool) (*Run, error) {
	if board := t.boards[run]; board != nil {
		return board, nil
	}
	board, err := t.Run(background, run+onBoard)
	switch {
	case err != nil:
		return nil, err
	case board == nil && !holds:
		return nil, refused{journal.ErrNoBoard}
	case board == nil:
		board = &Run{ID: run + onBoard, Owner: boardOwner}
		err = t.Insert(board)
	}
	if err != nil {
		return nil, err
	}
	if t.boards == nil {
		t.boards = map[string]*Run{}
	}
	t.boards[run] = board
	return board, nil
}

// posted returns the rows of a board that have the keys of rows.
func (t *transaction) posted(board int64, rows []*Row) (map[string]*Row, error) {
	keys := make([]string, len(rows))
	for i, row := range rows {
		keys[i] = row.Path
	}
	found := map[string]*Row{}
	for row, err := range t.Rows(background, board, Selection{Paths: keys}) {
		if err == nil && row.check(true) != nil {
			err = refused{t.j.damage("", row, errChanged)}
		}
		if err != nil {
			return nil, err
		}
		found[row.Path] = row
	}
	return found, nil
}

// clear removes the board of a run, if it has one.
func (t *transaction) clear(run string) error {
	delete(t.boards, run)
	board, err := t.Run(background, run+onBoard)
	if err != nil || board == nil {
		return err
	}
	return t.Remove(board.Row)
}

// Posted implements [journal.Board].
func (j *Journal) Posted(ctx context.Context, run string, keys ...string) (map[string]journal.Item, error) {
	found := map[string]journal.Item{}
	board, err := j.data.Run(ctx, run+onBoard)
	if err != nil || board == nil {
		return found, j.data.Explain(err)
	}
	if len(keys) == 0 {
		return found, nil
	}
	err = j.items(ctx, board, Selection{Paths: keys}, func(row *Row) bool {
		found[row.Path] = itemOf(row)
		return true
	})
	return found, err
}

// items reads items of a board until f returns false, and checks them.
func (j *Journal) items(ctx context.Context, board *Run, s Selection, f func(*Row) bool) error {
	for row, err := range j.data.Rows(ctx, board.Row, s) {
		if err != nil {
			return j.data.Explain(err)
		}
		if err := row.check(true); err != nil {
			return j.damage(strings.TrimSuffix(board.ID, onBoard), row, err)
		}
		if !f(row) {
			return nil
		}
	}
	return nil
}

// Watch implements [journal.Board].
func (j *Journal) Watch(ctx context.Context, run, prefix string, after int64) iter.Seq2[journal.Item, error] {
	return func(yield func(journal.Item, error) bool) {
		for {
			news := j.out.news() // before reading, so that no commit is missed
			found, next, err := j.more(ctx, run, prefix, after)
			for _, item := range found {
				if !yield(item, nil) {
					return
				}
			}
			if err == nil && next == after {
				err = j.await(ctx, news)
			}
			if after = next; err != nil {
				if ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				yield(journal.Item{}, err)
				return
			}
		}
	}
}

// more returns the next items after a position, and the position up to which it has looked:
// items with other keys are not read again. They are read before the caller of Watch gets the
// first one: a slow caller must not keep a connection.
func (j *Journal) more(ctx context.Context, run, prefix string, after int64) (found []journal.Item, next int64, err error) {
	const most = 256
	board, err := j.data.Run(ctx, run+onBoard)
	if err != nil || board == nil || board.Tip <= after {
		return nil, after, j.data.Explain(err)
	}
	err = j.items(ctx, board, Selection{After: after, Under: prefix}, func(row *Row) bool {
		found = append(found, itemOf(row))
		return len(found) < most
	})
	switch {
	case err != nil:
		return nil, after, err
	case len(found) == most:
		return found, found[most-1].Seq, nil
	case len(found) > 0: // one may have come since the board was read
		return found, max(board.Tip, found[len(found)-1].Seq), nil
	}
	return nil, board.Tip, nil
}

// await returns when this Journal has committed, or another process may have.
func (j *Journal) await(ctx context.Context, news <-chan struct{}) error {
	timer := time.NewTimer(j.opts.Poll + rand.N(j.opts.Poll/8+1)) // processes do not poll in step
	defer timer.Stop()
	select {
	case <-news:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
