package view

import (
	"context"
	"iter"

	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/journal"
)

// SizeOf estimates the size of a question in bytes.
func SizeOf(q journal.Question) int {
	n := 256 + len(q.Path) + len(q.Text) + len(q.Schema) + len(q.Problem) + len(q.Response) + len(q.Default)
	for _, choice := range q.Choices {
		n += 16 + len(choice)
	}
	if q.Call != nil {
		n += len(q.Call.Input) + len(q.Call.Request) + len(q.Call.Said)
	}
	return n
}

// Brief returns a question without its long parts: Text, Problem, Default and Response are truncated, and Choices, Schema and Call
// are removed.
func Brief(q journal.Question) journal.Question {
	const most = 2 << 10
	for _, text := range []*string{&q.Text, &q.Problem, &q.Default, &q.Response} {
		if len(*text) > most {
			*text = bounds.Cut(*text, most)
		}
	}
	q.Choices, q.Schema, q.Call = nil, nil, nil
	return q
}

// BriefQuestions returns all questions of a run, shortened with Brief.
func BriefQuestions(ctx context.Context, j journal.Journal, run string) (all []journal.Question, err error) {
	for q, err := range j.EachQuestion(ctx, journal.QuestionQuery{Run: run}) {
		if err != nil {
			return nil, err
		}
		all = append(all, Brief(q))
	}
	return all, nil
}

// Page returns the first questions of a list, limited by number and approximate size in bytes, and reports whether there are more.
func Page(all iter.Seq2[journal.Question, error], most, bytes int) (page []journal.Question, more bool, err error) {
	for q, err := range all {
		if err != nil {
			return nil, false, err
		}
		if bytes -= SizeOf(q); len(page) == most || bytes < 0 && len(page) > 0 {
			return page, true, nil
		}
		page = append(page, q)
	}
	return page, false, nil
}
