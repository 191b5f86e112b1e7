package log

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/journal"
)

// Ask implements [journal.Interviewer].
func (j *Journal) Ask(ctx context.Context, q journal.Question) (journal.Question, error) {
	row, err := j.data.Run(ctx, q.Run)
	if err != nil {
		return journal.Question{}, j.data.Explain(err)
	}
	if row != nil && q.Problem == "" { // most calls only look for an answer
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
			kept.Text, kept.Choices, kept.Schema, kept.Call, kept.Version = q.Text, q.Choices, q.Schema, q.Call, q.Version
			kept.Response, kept.By, kept.Given, kept.Answered = "", "", time.Time{}, time.Time{}
		}
		return t.keepQuestion(row.Row, kept)
	}})
	if err != nil {
		return journal.Question{}, err
	}
	return kept, nil
}

// question reads a question, nil if there is none.
func (j *Journal) question(ctx context.Context, from Reader, run int64, id, path string) (*journal.Question, error) {
	found, err := from.Questions(ctx, run, QuestionSelection{Path: path})
	if err != nil {
		return &journal.Question{}, j.data.Explain(err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	q, err := j.asked(found[0], id)
	return &q, err
}

// asked returns the question in a row, or an error if the row was changed.
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

// Answer implements [journal.Interviewer]. It takes no lease: the run may be running.
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

// OpenQuestions is for [journal.OpenQuestions], which chooses the conditions.
func (j *Journal) OpenQuestions(ctx context.Context, q journal.Query) (open []journal.Question, err error) {
	for q.Limit = journal.DefaultLimit; ; {
		page, err := j.Runs(ctx, q)
		if err != nil {
			return nil, err
		}
		ids := make([]string, len(page))
		for i, r := range page {
			ids[i] = r.ID
		}
		found, err := j.data.Open(ctx, ids)
		if err != nil {
			return nil, j.data.Explain(err)
		}
		open = append(j.sound(found), open...) // its runs are older
		if len(page) < q.Limit {
			return open, nil
		}
		q.Before = page[len(page)-1].ID
	}
}

// sound returns the questions in rows, without those of runs with a damaged one.
func (j *Journal) sound(found []*Question) (all []journal.Question) {
	damaged := map[int64]bool{}
	of := map[*Question]journal.Question{}
	for _, row := range found {
		q, err := j.asked(row, "")
		of[row], damaged[row.Run] = q, damaged[row.Run] || err != nil
	}
	for _, row := range found {
		if !damaged[row.Run] {
			all = append(all, of[row])
		}
	}
	return all
}

// Questions implements [journal.Interviewer].
func (j *Journal) Questions(ctx context.Context, run string) ([]journal.Question, error) {
	row, err := j.data.Run(ctx, run)
	if err != nil || row == nil {
		return nil, j.data.Explain(err)
	}
	var questions []journal.Question
	found, err := j.data.Questions(ctx, row.Row, QuestionSelection{})
	if err != nil {
		return nil, j.data.Explain(err)
	}
	for _, row := range found {
		q, err := j.asked(row, run)
		if err != nil {
			return nil, err
		}
		questions = append(questions, q)
	}
	return questions, nil
}
