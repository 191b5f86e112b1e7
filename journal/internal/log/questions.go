package log

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/journal"
)

// Ask implements [journal.Journal].
func (j *Journal) Ask(ctx context.Context, q journal.Question) (journal.Question, error) {
	row, err := j.data.Run(ctx, q.Run)
	if err != nil {
		return journal.Question{}, j.data.Explain(err)
	}
	if row != nil && q.Problem == "" { // most calls only check for an answer, which needs no write
		if found, err := j.question(ctx, j.data, row.Row, q.Run, q.Path); found != nil || err != nil {
			return *found, err
		}
	}
	if err := bounds.CheckQuestion(q.Path, q); err != nil {
		return journal.Question{}, err
	}
	var holder *run
	if q.Problem != "" {
		if holder = j.holding(q.Run); holder == nil {
			return journal.Question{}, cmp.Or(context.Cause(j.Held(q.Run)), j.notHeld(q.Run))
		}
	}
	var kept journal.Question
	err = j.out.write(&write{run: holder, also: q.Run, do: func(t *transaction) error {
		if holder != nil {
			t.part(holder)
		}
		row, err := t.Run(background, q.Run)
		if err != nil {
			return err
		}
		if row == nil {
			if err := bounds.CheckID(q.Run); err != nil {
				return refused{err}
			}
			row = &Run{ID: q.Run}
			if err := t.Insert(row); err != nil {
				return err
			}
		}
		found, err := t.j.question(background, t, row.Row, q.Run, q.Path)
		if err != nil {
			return err
		}
		if kept = q; found != nil {
			kept = *found
		}
		if kept.Problem = q.Problem; q.Problem != "" || found == nil {
			kept.Text, kept.Choices, kept.Standing, kept.Schema, kept.Call, kept.Version = q.Text, q.Choices, q.Standing, q.Schema, q.Call, q.Version
			kept.Response, kept.By, kept.Given, kept.Answered = "", "", time.Time{}, time.Time{}
		}
		return t.keepQuestion(row.Row, kept)
	}})
	if err != nil {
		return journal.Question{}, err
	}
	return kept, nil
}

// question reads a question of a run. It returns nil if there is none.
func (j *Journal) question(ctx context.Context, from Reader, run int64, id, path string) (*journal.Question, error) {
	for row, err := range from.Questions(ctx, QuestionSelection{Run: run, Path: path}) {
		if err != nil {
			return &journal.Question{}, j.data.Explain(err)
		}
		q, err := j.asked(row, id)
		return &q, err
	}
	return nil, nil
}

// asked returns the question stored in a row, or an error if the row is damaged.
func (j *Journal) asked(row *Question, run string) (q journal.Question, err error) {
	if !unbroken(row.Seal, row.Text, true, row.fields()...) {
		err = errChanged
	} else {
		err = json.Unmarshal(row.Text, &q)
	}
	if err != nil {
		err = &journal.DamageError{Where: j.data.Name(), Run: run, Path: row.Path, Reason: "has a question that " + err.Error()}
	}
	return q, err
}

func (q *Question) fields() [][]byte {
	open := byte(0)
	if q.Open {
		open = 1
	}
	return [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(q.Run)), []byte(q.Path), {open}}
}

func (t *transaction) keepQuestion(run int64, q journal.Question) error {
	text, err := json.Marshal(q)
	if err != nil {
		return refused{fmt.Errorf("question at %s: %w", q.Path, err)}
	}
	row := &Question{Run: run, Path: q.Path, Open: q.Open(), Text: text}
	row.Seal = seal(row.Text, row.fields()...)
	return t.PutQuestion(row)
}

// Answer implements [journal.Journal]. It does not need the lease: another process may hold the run.
func (j *Journal) Answer(_ context.Context, run, path string, a ask.Answer) error {
	if err := bounds.CheckResponse(a.Response); err != nil {
		return err
	}
	return j.out.write(&write{also: run, do: func(t *transaction) error {
		none := refused{fmt.Errorf("run %q, question at %s: %w", run, path, journal.ErrNoQuestion)}
		row, err := t.Run(background, run)
		if err != nil {
			return err
		}
		if row == nil {
			return none
		}
		q, err := t.j.question(background, t, row.Row, run, path)
		if err != nil {
			return err
		}
		if q == nil || !q.Open() {
			return none
		}
		if a.To != "" && a.To != q.Version {
			return refused{fmt.Errorf("run %q, question at %s: %w", run, path, journal.ErrAsksOther)}
		}
		q.Response, q.By, q.Given, q.Answered = a.Response, a.By, a.Given, t.j.now()
		return t.keepQuestion(row.Row, *q)
	}})
}

// EachQuestion implements [journal.Journal].
func (j *Journal) EachQuestion(ctx context.Context, q journal.QuestionQuery) iter.Seq2[journal.Question, error] {
	return func(yield func(journal.Question, error) bool) {
		s := QuestionSelection{Labels: q.Labels, Path: q.Path, Open: q.Open, Due: !q.Due.IsZero()}
		some, err := j.chosen(ctx, &s, q)
		if err != nil {
			yield(journal.Question{}, j.data.Explain(err))
		}
		if err != nil || !some {
			return
		}
		for row, err := range j.data.Questions(ctx, s) {
			if err != nil {
				yield(journal.Question{}, j.data.Explain(err))
				return
			}
			one, err := j.asked(row, row.Of)
			switch {
			case err != nil && q.Run == "":
			case err != nil:
				yield(one, err)
				return
			case q.Selects(one) && j.labelled(ctx, row.Of, q.Labels) && !yield(one, nil):
				return
			}
		}
	}
}

// CountQuestions implements [journal.Journal].
func (j *Journal) CountQuestions(ctx context.Context, q journal.QuestionQuery) (int, error) {
	s := QuestionSelection{Labels: q.Labels, Path: q.Path, Open: q.Open}
	some, err := j.chosen(ctx, &s, journal.QuestionQuery{Run: q.Run})
	if err != nil || !some {
		return 0, j.data.Explain(err)
	}
	n, err := j.data.CountQuestions(ctx, s)
	return int(n), j.data.Explain(err)
}

// labelled reports whether a run that was selected by labels really has these labels. The stored ones are shortened: see [Column].
func (j *Journal) labelled(ctx context.Context, run string, labels map[string]string) bool {
	for name, value := range labels {
		if Column(name) != name || Column(value) != value {
			row, err := j.data.Run(ctx, run)
			return err == nil && row != nil && journal.Query{Labels: labels}.Selects(j.facts(row, true))
		}
	}
	return true
}

// chosen looks up the numbers that s needs for q.Run and q.After, and reports whether anything can be selected.
func (j *Journal) chosen(ctx context.Context, s *QuestionSelection, q journal.QuestionQuery) (some bool, err error) {
	if q.Run != "" {
		row, err := j.data.Run(ctx, q.Run)
		if err != nil || row == nil {
			return false, err
		}
		s.Run = row.Row
	}
	if q.After == nil {
		return true, nil
	}
	row, err := j.data.Run(ctx, q.After.Run)
	if err != nil || row == nil {
		return false, err
	}
	for after, err := range j.data.Questions(ctx, QuestionSelection{Run: row.Row, Path: q.After.Path}) {
		if err != nil {
			return false, err
		}
		s.After = after.Seq
	}
	return s.After != 0, nil
}

// Questions implements [journal.Journal].
func (j *Journal) Questions(ctx context.Context, run string) (all []journal.Question, err error) {
	for q, err := range j.EachQuestion(ctx, journal.QuestionQuery{Run: run}) {
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return all, nil
}
