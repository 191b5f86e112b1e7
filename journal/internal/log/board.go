package log

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
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

// Post implements [journal.Board].
func (j *Journal) Post(_ context.Context, run string, items ...journal.Item) ([]journal.Item, error) {
	return j.post(nil, run, items)
}

// PostHeld implements [journal.Board]: the transaction of the items checks the owner.
func (j *Journal) PostHeld(_ context.Context, run string, items ...journal.Item) ([]journal.Item, error) {
	r := j.holding(run)
	if r == nil {
		return nil, cmp.Or(context.Cause(j.Held(run)), j.notHeld(run))
	}
	return j.post(r, run, items)
}

// post writes items. If a run is given, it must still be ours.
func (j *Journal) post(of *run, run string, items []journal.Item) ([]journal.Item, error) {
	rows := make([]*Row, len(items))
	for i, item := range items {
		digest := sha256.Sum256([]byte(item.Key))
		rows[i] = &Row{Digest: digest[:], Path: item.Key, Head: strconv.AppendInt(nil, j.now().UnixMilli(), 10), Content: item.Data}
		rows[i].seal()
	}
	if len(rows) == 0 {
		return nil, nil
	}
	p := &post{run: run, rows: rows}
	if err := j.out.write(&write{run: of, also: run + onBoard, stays: true, paid: true, post: p}); err != nil {
		return nil, err // the writer may still own p
	}
	out := make([]journal.Item, len(p.kept))
	for i, row := range p.kept {
		out[i] = itemOf(row)
	}
	return out, nil
}

// A post is a write to the board of a run.
type post struct {
	run  string
	rows []*Row
	kept []*Row // the rows of the board with these keys, after the commit
}

func itemOf(r *Row) journal.Item {
	return journal.Item{Key: r.Path, Data: r.Content, Seq: r.Seq}
}

// post writes to boards. All posts to the same board share their statements.
func (t *transaction) post() error {
	boards := map[string][]*write{}
	var runs []string // in the order of their first posts
	for _, x := range t.posts {
		if boards[x.post.run] == nil {
			runs = append(runs, x.post.run)
		}
		boards[x.post.run] = append(boards[x.post.run], x)
	}
	t.posts = nil
	for _, run := range runs {
		if err := t.postTo(run, boards[run]); err != nil {
			return err
		}
	}
	return nil
}

// postTo appends the rows whose keys the board of a run does not have.
func (t *transaction) postTo(run string, posts []*write) error {
	var keys []string
	for _, x := range posts {
		for _, row := range x.post.rows {
			keys = append(keys, row.Path)
		}
	}
	board, has, err := t.boardWith(run, keys)
	if errors.Is(err, journal.ErrNoBoard) {
		for _, x := range posts {
			x.err = err
		}
		return nil
	}
	if err != nil {
		return err
	}
	for _, x := range posts {
		for _, row := range x.post.rows {
			if old := has[row.Path]; old != nil && old.check(true) != nil {
				x.err = t.j.damage(run, old, errChanged)
			}
		}
	}
	var fresh []*Row
	for _, x := range posts {
		if x.err != nil {
			continue // store nothing for it
		}
		x.post.kept = make([]*Row, len(x.post.rows))
		for i, row := range x.post.rows {
			if has[row.Path] == nil {
				board.Tip++
				row.Run, row.Seq = board.Row, board.Tip
				has[row.Path], fresh = row, append(fresh, row)
			}
			x.post.kept[i] = has[row.Path]
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := t.Append(fresh); err != nil {
		return err
	}
	return t.Put(board)
}

// mostKeys is the maximum number of keys in a statement, since databases limit parameters.
const mostKeys = 1000

// found calls each with the rows of a board that have one of the keys.
func found(ctx context.Context, from Reader, board int64, keys []string, each func(*Row)) error {
	for some := range slices.Chunk(keys, mostKeys) {
		for row, err := range from.Rows(ctx, board, Selection{Paths: some}) {
			if err != nil {
				return err
			}
			each(row)
		}
	}
	return nil
}

// mostBoards bounds the boards whose numbers a Journal remembers.
const mostBoards = 1000

// boardWith returns the board of a run as board does, and its rows that have one of the keys. While a
// transaction asks for the rows, other processes wait for the board. If it knows the number of the board from
// an earlier post, it asks for both at once.
func (t *transaction) boardWith(run string, keys []string) (board *Run, has map[string]*Row, err error) {
	has = map[string]*Row{}
	keep := func(row *Row) { has[row.Path] = row }
	known := t.j.boards[run]
	if both, ok := t.Tx.(RunReader); ok && known != 0 && t.boards[run] == nil && len(keys) <= mostKeys {
		rows, whole := []*Row(nil), false
		if board, rows, whole, err = both.RunWith(run+onBoard, known, keys); err != nil {
			return nil, nil, err
		}
		if board != nil && board.Row == known && whole {
			t.keepBoard(run, board)
			for _, row := range rows {
				keep(row)
			}
			return board, has, nil
		}
	}
	if board, err = t.board(run); err == nil {
		err = found(background, t, board.Row, keys, keep)
	}
	return board, has, err
}

// keepBoard remembers a board, and its number for later transactions.
func (t *transaction) keepBoard(run string, board *Run) {
	if t.boards == nil {
		t.boards = map[string]*Run{}
	}
	t.boards[run] = board
	if t.j.boards == nil || len(t.j.boards) >= mostBoards {
		t.j.boards = map[string]int64{}
	}
	t.j.boards[run] = board.Row // of a transaction that fails, too: it is compared
}

// board returns the board of a run, which no other transaction changes until this one ends.
// If the run has none, it makes one for the holder of a run that has not ended.
func (t *transaction) board(run string) (*Run, error) {
	if board := t.boards[run]; board != nil {
		return board, nil
	}
	board, err := t.Run(background, run+onBoard)
	if err != nil {
		return nil, err
	}
	if board == nil {
		of, now, err := t.j.lease(background, t, run)
		if err != nil {
			return nil, err
		}
		if now.free() || now.owner != t.j.owner || isOver(journal.State(of.State)) {
			return nil, journal.ErrNoBoard
		}
		board = &Run{ID: run + onBoard, Owner: boardOwner}
		if err := t.Insert(board); err != nil {
			return nil, err
		}
	}
	t.keepBoard(run, board)
	return board, nil
}

// isOver reports whether no process needs the board of a run with this state to resume it.
func isOver(s journal.State) bool { return s == journal.Done || s == journal.Failed }

// clear removes the board of a run, if it has one.
func (t *transaction) clear(run string) error {
	delete(t.boards, run)
	delete(t.j.boards, run)
	board, err := t.Run(background, run+onBoard)
	if err != nil || board == nil {
		return err
	}
	return t.Remove(board.Row)
}

// Posted implements [journal.Board].
func (j *Journal) Posted(ctx context.Context, run string, keys ...string) (map[string]journal.Item, error) {
	items := map[string]journal.Item{}
	board, err := j.data.Run(ctx, run+onBoard)
	if err != nil || board == nil {
		return items, j.data.Explain(err)
	}
	var broken error
	err = found(ctx, j.data, board.Row, keys, func(row *Row) {
		if items[row.Path] = itemOf(row); row.check(true) != nil {
			broken = j.damage(run, row, errChanged)
		}
	})
	return items, cmp.Or(j.data.Explain(err), broken)
}

// PostedUnder implements [journal.Board].
func (j *Journal) PostedUnder(ctx context.Context, run, prefix string) (found []journal.Item, err error) {
	board, err := j.data.Run(ctx, run+onBoard)
	if err != nil || board == nil {
		return nil, j.data.Explain(err)
	}
	err = j.items(ctx, board, Selection{Prefix: prefix}, func(row *Row) { found = append(found, itemOf(row)) })
	slices.SortFunc(found, func(a, b journal.Item) int { return cmp.Compare(a.Seq, b.Seq) })
	return found, err
}

// items passes items of a board to f, and checks them.
func (j *Journal) items(ctx context.Context, board *Run, s Selection, f func(*Row)) error {
	for row, err := range j.data.Rows(ctx, board.Row, s) {
		if err != nil {
			return j.data.Explain(err)
		}
		if err := row.check(true); err != nil {
			return j.damage(strings.TrimSuffix(board.ID, onBoard), row, err)
		}
		f(row)
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
	err = j.items(ctx, board, Selection{After: after, Under: prefix, Most: most}, func(row *Row) { found = append(found, itemOf(row)) })
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

// await returns when this Journal has committed, or another process may have. The first call begins to listen to those.
func (j *Journal) await(ctx context.Context, news <-chan struct{}) error {
	j.listening.Do(func() { j.data.Listen(j.out.tell) })
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
