package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stonelayer/stone/journal"
)

// Ask implements [journal.Interviewer].
func (db *DB) Ask(ctx context.Context, q journal.Question) (kept journal.Question, err error) {
	kept, err = db.question(db.sql.QueryRowContext(ctx, oneQuestion, q.Run, q.Path), q.Run)
	if err == nil && q.Problem == "" {
		return kept, nil // most often it is asked to see whether there is an answer
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return kept, db.explain(err)
	}
	r := newRun(q.Run)
	if _, err := db.enter(ctx, r); err != nil {
		return kept, db.explain(err)
	}
	err = db.change(func(t *transaction) error {
		kept, err = db.question(t.row(oneQuestion, q.Run, q.Path), q.Run)
		if errors.Is(err, sql.ErrNoRows) {
			kept = q
		} else if err != nil {
			return err
		}
		if kept.Problem = q.Problem; q.Problem != "" || err != nil {
			kept.Answered, kept.Response = time.Time{}, ""
		}
		return t.keepQuestion(kept)
	})
	return kept, err
}

const oneQuestion = "SELECT question FROM questions WHERE run = (SELECT run FROM runs WHERE id = ?) AND path = ?"

// question reads a question.
func (db *DB) question(row interface{ Scan(...any) error }, run string) (q journal.Question, err error) {
	var text []byte
	if err := row.Scan(&text); err != nil {
		return q, err
	}
	if err := json.Unmarshal(text, &q); err != nil {
		return q, &journal.DamageError{Where: db.file, Run: run, Reason: "has a question that cannot be read: " + err.Error()}
	}
	return q, nil
}

func (t *transaction) keepQuestion(q journal.Question) error {
	text, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("question at %s: %w", q.Path, err)
	}
	_, err = t.do(`INSERT INTO questions (run, path, question) VALUES ((SELECT run FROM runs WHERE id = ?), ?, ?)
		ON CONFLICT DO UPDATE SET question = excluded.question`, q.Run, q.Path, string(text))
	return err
}

// Answer implements [journal.Interviewer]. It takes no lease: the run may be under
// way.
func (db *DB) Answer(_ context.Context, run, path, response string) error {
	return db.change(func(t *transaction) error {
		q, err := db.question(t.row(oneQuestion, run, path), run)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !q.Open() {
			return fmt.Errorf("run %q, question at %s: %w", run, path, journal.ErrNoQuestion)
		}
		if err != nil {
			return err
		}
		q.Response, q.Answered = response, db.now()
		return t.keepQuestion(q)
	})
}

// Questions implements [journal.Interviewer].
func (db *DB) Questions(ctx context.Context, run string) ([]journal.Question, error) {
	rows, err := db.sql.QueryContext(ctx, "SELECT question FROM questions WHERE run = (SELECT run FROM runs WHERE id = ?) ORDER BY seq", run)
	if err != nil {
		return nil, db.explain(err)
	}
	defer rows.Close()
	var questions []journal.Question
	for rows.Next() {
		q, err := db.question(rows, run)
		if err != nil {
			return nil, db.explain(err)
		}
		questions = append(questions, q)
	}
	return questions, db.explain(rows.Err())
}
