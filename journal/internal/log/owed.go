package log

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/journal"
)

// A Beside is the name of a table whose rows belong to runs but are not records.
type Beside string

// The Beside tables.
const (
	Batches   Beside = "batches"
	Receivers Beside = "receivers"
)

// Note is a row of a Beside table.
type Note struct {
	Run  int64
	Name string
	Open bool   // true for a batch that has an estimated cost
	Data []byte // JSON
	Seal []byte // checksum of the fields above
}

// Outstanding is an open batch, together with the ID of its run and the JSON of the run's journal.RunInfo.
type Outstanding struct {
	Note
	ID   string
	Info []byte
}

func (n *Note) fields() [][]byte {
	open := byte(0)
	if n.Open {
		open = 1
	}
	return [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(n.Run)), []byte(n.Name), {open}}
}

// Notice is an owed.Notice as a database stores it. It is identified by Run, Receiver, Event and Name.
type Notice struct {
	Run                   int64
	Receiver, Event, Name string
	ID                    string // ID of the run; set only by a Reader
	At, Next              int64  // Unix milliseconds; Next is 0 if the notice need not be sent any more
	Tries                 int64
	Body                  []byte
}

// notes reads and decodes the rows of a run in a table.
func notes[T any](ctx context.Context, j *Journal, from Reader, table Beside, run string, row int64) (all []T, err error) {
	found, err := from.Notes(ctx, table, row)
	for _, n := range found {
		var one T
		if !unbroken(n.Seal, n.Data, true, n.fields()...) || json.Unmarshal(n.Data, &one) != nil {
			return nil, &journal.DamageError{Where: j.data.Name(), Run: run, Reason: fmt.Sprintf("was changed in the table %s", table)}
		}
		all = append(all, one)
	}
	return all, j.data.Explain(err)
}

// notesOf is like notes, but identifies the run by its ID.
func notesOf[T any](ctx context.Context, j *Journal, table Beside, run string) ([]T, error) {
	row, err := j.data.Run(ctx, run)
	if err != nil || row == nil {
		return nil, j.data.Explain(err)
	}
	return notes[T](ctx, j, j.data, table, run, row.Row)
}

// note encodes value and stores it in a row.
func (t *transaction) note(table Beside, n *Note, value any) (err error) {
	if n.Data, err = json.Marshal(value); err != nil {
		return refused{err}
	}
	n.Seal = seal(n.Data, n.fields()...)
	return t.PutNote(table, n)
}

// Batches implements [owed.Store].
func (j *Journal) Batches(ctx context.Context, run string) ([]owed.Batch, error) {
	return notesOf[owed.Batch](ctx, j, Batches, run)
}

// PutBatch implements [owed.Store].
func (j *Journal) PutBatch(_ context.Context, run string, b owed.Batch) error {
	r := j.holding(run)
	if r == nil {
		return j.notHeld(run)
	}
	return j.out.write(&write{run: r, do: func(t *transaction) error {
		p := t.part(r)
		return t.note(Batches, &Note{Run: p.row, Name: fmt.Sprintf("%06d", b.Number), Open: b.State != owed.Ended}, b)
	}})
}

// Receivers implements [owed.Store].
func (j *Journal) Receivers(ctx context.Context, run string) ([]owed.Receiver, error) {
	return notesOf[owed.Receiver](ctx, j, Receivers, run)
}

// PutReceiver implements [owed.Store].
func (j *Journal) PutReceiver(_ context.Context, run string, to owed.Receiver) error {
	return j.out.write(&write{also: run, do: func(t *transaction) error {
		row, err := t.Run(background, run)
		if err != nil {
			return err
		}
		if row == nil || row.Info == nil {
			return refused{noRun(run)}
		}
		all, err := notes[owed.Receiver](background, t.j, t, Receivers, run, row.Row)
		if errors.As(err, new(*journal.DamageError)) {
			return refused{err}
		}
		if err != nil {
			return err
		}
		others := len(all)
		for _, one := range all {
			if one.Name == to.Name {
				others--
			}
		}
		if others >= owed.MostReceivers {
			return refused{owed.ErrFull}
		}
		if err := t.note(Receivers, &Note{Run: row.Row, Name: to.Name}, to); err != nil || row.Lease != 0 || row.Outer != "" || !stopped(row.State) {
			return err
		}
		info, err := t.j.opened(row, false)
		if err != nil {
			return refused{err}
		}
		return t.OweReceivers(row.Row, owed.Stopped(row.State, info.Ended), millis(t.j.now())) // keeps existing notices
	}})
}

// DropReceiver implements [owed.Store].
func (j *Journal) DropReceiver(_ context.Context, run, name string) error {
	return j.out.write(&write{also: run, do: func(t *transaction) error {
		row, err := t.Run(background, run)
		if err != nil || row == nil {
			return err
		}
		return t.DropReceiver(row.Row, name)
	}})
}

// stopped reports whether receivers are notified when a run stops in the given state.
func stopped(state string) bool {
	switch journal.State(state) {
	case journal.Done, journal.Failed, journal.Canceled, journal.Refused, journal.Waiting:
		return true
	}
	return false
}

// stops adds the notices to send when a run ends or waits. It adds none for an inner run, because servers do not start inner runs.
func (t *transaction) stops(r *run, row *Run, o journal.Outcome) error {
	if r.outer != nil || !stopped(string(o.State)) {
		return nil
	}
	at := max(1, millis(o.Ended))
	err := t.OweReceivers(row.Row, owed.Stopped(string(o.State), o.Ended), at)
	var info struct{ Notify []string }
	if json.Unmarshal(row.Info, &info) != nil || len(info.Notify) == 0 || err != nil {
		return err
	}
	events := []string{owed.Stopped(string(o.State), o.Ended)}
	if o.State == journal.Waiting {
		events = nil
		for one, err := range t.Questions(background, QuestionSelection{Run: row.Row, Open: true}) {
			if err != nil {
				return err
			}
			if q, err := t.j.asked(one, row.ID); err == nil { // a damaged question needs no notice; other reads report it
				events = append(events, owed.Asked(q.Path, q.Problem, q.Asked))
			}
		}
	}
	for _, name := range info.Notify {
		for _, event := range events {
			if err := t.Owe(&Notice{Run: row.Row, Receiver: name, Event: event, At: at, Next: at}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Due implements [owed.Store].
func (j *Journal) Due(ctx context.Context, at time.Time, but []string, most int) (due []owed.Notice, err error) {
	found, err := j.data.Due(ctx, at.UnixMilli(), at.Add(owed.LongestPause).UnixMilli(), but, most)
	for _, n := range found {
		due = append(due, owed.Notice{Receiver: n.Receiver, Run: n.ID, Event: n.Event, Name: n.Name, At: instant(n.At), Next: instant(n.Next), Tries: int(n.Tries), Body: n.Body})
	}
	return due, j.data.Explain(err)
}

// PutNotice implements [owed.Store].
func (j *Journal) PutNotice(_ context.Context, n owed.Notice, tries int) (still bool, err error) {
	var is bool // the writer owns is until write returns
	err = j.out.write(&write{also: n.Run, do: func(t *transaction) error {
		row, err := t.Run(background, n.Run)
		if err != nil || row == nil {
			return err
		}
		is, err = t.PutNotice(&Notice{Run: row.Row, Receiver: n.Receiver, Name: n.Name, Event: n.Event, Next: millis(n.Next), Tries: int64(n.Tries), Body: n.Body}, int64(tries))
		return err
	}})
	if err == nil {
		still = is
	}
	return still, err
}
