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
	holds := j.holding(run) != nil
	var kept []*Row // the writer owns this variable until it has answered
	err := j.out.write(&write{stays: true, do: func(t *transaction) (err error) {
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
	board, err := t.Run(background, run+onBoard)
	switch {
	case err != nil:
		return nil, err
	case board == nil && !holds:
		return nil, refused{journal.ErrNoBoard}
	case board == nil:
		board = &Run{ID: run + onBoard, Owner: boardOwner}
		if err := t.Insert(board); err != nil {
			return nil, err
		}
	default:
		// Where transactions run concurrently, writing the row locks it: only then is its Tip
		// final.
		if err := t.Put(board); err != nil {
			return nil, err
		}
		if board, err = t.Run(background, run+onBoard); err != nil {
			return nil, err
		}
	}
	kept := make([]*Row, len(rows))
	var fresh []*Row
	for i, row := range rows {
		if kept[i], err = t.posted(board.Row, row.Path); err != nil {
			return nil, err
		}
		if kept[i] == nil {
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

// posted returns the row with the key, or nil.
func (t *transaction) posted(board int64, key string) (*Row, error) {
	for row, err := range t.Rows(background, board, Selection{Path: key}) {
		if err == nil && row.check(true) != nil {
			err = refused{t.j.damage("", row, errChanged)}
		}
		return row, err
	}
	return nil, nil
}

// clear removes the board of a run, if it has one.
func (t *transaction) clear(run string) error {
	board, err := t.Run(background, run+onBoard)
	if err != nil || board == nil {
		return err
	}
	return t.Remove(board.Row)
}

// Posted implements [journal.Board].
func (j *Journal) Posted(ctx context.Context, run, key string) (item journal.Item, err error) {
	err = journal.ErrNoItem
	_, failed := j.items(ctx, run, Selection{Path: key}, func(row *Row) bool {
		item, err = itemOf(row), nil
		return false
	})
	if failed != nil {
		err = failed
	}
	return item, err
}

// items reads items of a board, and checks them. It returns how many items the board had
// before, and reads none if that is not more than s.After.
func (j *Journal) items(ctx context.Context, run string, s Selection, f func(*Row) bool) (tip int64, err error) {
	board, err := j.data.Run(ctx, run+onBoard)
	if err != nil || board == nil || board.Tip <= s.After {
		return s.After, j.data.Explain(err)
	}
	for row, err := range j.data.Rows(ctx, board.Row, s) {
		if err != nil {
			return 0, j.data.Explain(err)
		}
		if err := row.check(true); err != nil {
			return 0, j.damage(run, row, err)
		}
		if !f(row) {
			break
		}
	}
	return board.Tip, nil
}

// Watch implements [journal.Board].
func (j *Journal) Watch(ctx context.Context, run, prefix string, after int64) iter.Seq2[journal.Item, error] {
	const most = 256 // read before the caller gets the first one: a slow caller must not keep a connection
	return func(yield func(journal.Item, error) bool) {
		for {
			news := j.out.news() // before reading, so that no commit is missed
			var found []journal.Item
			tip, err := j.items(ctx, run, Selection{After: after, Under: prefix}, func(row *Row) bool {
				found = append(found, itemOf(row))
				return len(found) < most
			})
			for _, item := range found {
				if after = item.Seq; !yield(item, nil) {
					return
				}
			}
			if err == nil && len(found) < most {
				after = max(after, tip) // items with other keys are not read again
				err = j.await(ctx, news)
			}
			if err != nil {
				if ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				yield(journal.Item{}, err)
				return
			}
		}
	}
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
