package stone_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// This file is the code of the package comment: TestTutorial holds every line of that
// to a line here.

type LetterDoc struct {
	Text string `json:"text"`
}

type SortedDoc struct {
	Area string `json:"area" enum:"billing,bug"`
}

var (
	Letter = dag.NewType[LetterDoc]("letter")
	Sorted = dag.NewType[SortedDoc]("sorted")
	Draft  = dag.NewType[string]("draft")
	Word   = dag.NewType[string]("word")
	Shout  = dag.NewType[string]("shout")
	Short  = dag.NewType[string]("short")
)

func sorting() stone.Ashlar {
	sort := stone.Func("sort", Letter, Sorted, func(_ context.Context, l LetterDoc) (SortedDoc, error) {
		if strings.Contains(l.Text, "invoice") {
			return SortedDoc{Area: "billing"}, nil
		}
		return SortedDoc{Area: "bug"}, nil
	})
	return sort
}

func reading() stone.Ashlar {
	draft := stone.Func2("draft", Letter, dag.Maybe(Sorted), Draft,
		func(_ context.Context, l LetterDoc, s *SortedDoc) (string, error) {
			if s == nil {
				return "", stone.Fail("unsorted", "the letter %.20q has no area", l.Text)
			}
			return "About " + s.Area + ": thank you.", nil
		})
	return draft
}

func composed() stone.Ashlar {
	sort, draft := sorting(), reading()
	billing := stone.Func("billing", Letter, Draft, func(context.Context, LetterDoc) (string, error) { return "The invoice is on its way.", nil })
	p := stone.Seq("answer",
		sort,
		stone.Match("route", stone.Lens("area"),
			stone.Case("billing", billing),
			stone.Case("bug", draft),
		),
	)
	return p
}

func lanes() stone.Ashlar {
	words := dag.Derive(Letter, func(l LetterDoc) []string { return strings.Fields(l.Text) })
	loud := stone.Func("loud", Word, Shout, func(_ context.Context, w string) (string, error) {
		return strings.ToUpper(w), nil
	})
	all := stone.Seq("shout",
		stone.Map("each-word", words, Word, loud, stone.AllLanes()),
		stone.Reduce(stone.Func("join", dag.Lanes(Shout), Short, func(_ context.Context, said []string) (string, error) {
			return strings.Join(said, " "), nil
		})),
	)
	return all
}

func running(ctx context.Context, p stone.Ashlar) error {
	reply, err := stone.Produce(ctx, p, Draft, stone.Config{
		Input: dag.Of(Letter.With(LetterDoc{Text: "My invoice is missing."})),
	})
	if err == nil && reply != "The invoice is on its way." {
		err = errors.New(reply)
	}
	return err
}

func failing(ctx context.Context, p stone.Ashlar, input dag.DAG) string {
	_, err := stone.Run(ctx, p, stone.Config{Input: input})
	if errors.Is(err, kind.Timeout) {
		return "try again later"
	}
	var failure *stone.Failure
	if errors.As(err, &failure) {
		return fmt.Sprint(failure.Path, " ", failure.Kind, ": ", failure.Reason)
	}
	return fmt.Sprint(err)
}

func durable(ctx context.Context, p stone.Ashlar, input dag.DAG, db journal.Journal, handler slog.Handler) (stone.Result, error) {
	res, err := stone.Run(ctx, p, stone.Config{
		RunID:    "letter-17",
		Input:    input,
		Recorder: journal.Keep(db, journal.Options{}),
		Watch:    event.Log(handler),
	})
	return res, err
}

func TestTutorial(t *testing.T) {
	ctx, input := t.Context(), dag.Of(Letter.With(LetterDoc{Text: "an invoice"}))
	if err := running(ctx, composed()); err != nil {
		t.Error(err)
	}
	if got, err := stone.Produce(ctx, lanes(), Short, stone.Config{Input: input}); got != "AN INVOICE" {
		t.Errorf("%q, %v", got, err)
	}
	if got := failing(ctx, reading(), input); !strings.Contains(got, `has no area`) {
		t.Errorf("%q", got)
	}
	if _, err := durable(ctx, composed(), input, memdb.New(t), slog.DiscardHandler); err != nil {
		t.Error(err)
	}

	comment, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("tutorial_test.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(string(code)) {
		lines[strings.Join(strings.Fields(line), " ")] = true
	}
	shown := 0
	for line := range strings.Lines(string(comment)) {
		block, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			continue
		}
		if shown++; !lines[strings.Join(strings.Fields(block), " ")] {
			t.Errorf("doc.go shows a line that is not in this file: %s", block)
		}
	}
	if shown < 40 {
		t.Errorf("doc.go shows %d lines of code", shown)
	}
}
