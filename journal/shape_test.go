package journal_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

var (
	word   = dag.NewType[string]("word")
	number = dag.NewType[int]("number")
	list   = dag.NewType[[]int]("list")
)

func leaf(name string, opts ...stone.LeafOption) stone.Ashlar {
	return stone.New(name, word, func(context.Context, dag.DAG) (string, error) { return "", nil }, opts...)
}

func TestChanges(t *testing.T) {
	never := stone.Until(word, func(string) bool { return false })
	count := func(name string) stone.Ashlar {
		return stone.Func0(name, number, func(context.Context) (int, error) { return 0, nil })
	}
	otherNumber := dag.NewType[string]("number")
	for _, c := range []struct {
		name        string
		before, now stone.Ashlar
		want        string // lines
	}{
		{"nothing", leaf("a"), leaf("a"), ""},
		{"a version", stone.Seq("s", leaf("a"), leaf("b")), stone.Seq("s", leaf("a"), leaf("b", stone.Version("2"))), `the version of s/b changed from none to "2"`},
		{"a digest for a version", leaf("a"), leaf("a", stone.Version(strings.Repeat("0123456789abcdef", 4))), "the version of a changed from none to 0123456789ab"},
		{"a step is added", stone.Seq("s", leaf("a")), stone.Seq("s", leaf("a"), stone.Seq("t", leaf("b"))), "s/t was added"},
		{"a step is removed", stone.Seq("s", stone.Seq("t", leaf("b")), leaf("a")), stone.Seq("s", leaf("a")), "s/t was removed"},
		{"a step is renamed", stone.Seq("s", leaf("a"), count("b")), stone.Seq("s", leaf("a"), count("c")), "s/b is now called s/c"},
		{"a step is replaced", stone.Seq("s", leaf("a")), stone.Seq("s", count("b")), "s/a was removed\ns/b was added"},
		{"a branch more", stone.Match("m", stone.Lens(), stone.Case("x", leaf("a"))), stone.Match("m", stone.Lens(), stone.Case("x", leaf("a")), stone.Case("y", leaf("b"))),
			"the branches of m changed from [\"x\"] to [\"x\" \"y\"]\nm/b was added"},
		{"the order", stone.Seq("s", leaf("a"), leaf("b")), stone.Seq("s", leaf("b"), leaf("a")), "the steps of s have another order: b, a, it was a, b"},
		{"a bound", stone.Loop("l", leaf("a"), never, 3), stone.Loop("l", leaf("a"), never, 4), "the bound of l changed from 3 to 4"},
		{"lanes", stone.Parallel("p", leaf("a")), stone.Parallel("p", leaf("a"), stone.AllLanes()), "p changed in its bounds"},
		{"queries", leaf("a", stone.Queries(number)), leaf("a", stone.Queries(list)), "a does not read \"number\" any more\na now reads \"list\""},
		{"a type", leaf("a"), count("a"), `the type of a changed from "word" to "number"`},
		{"a schema", count("a"), stone.Func0("a", otherNumber, func(context.Context) (string, error) { return "", nil }), `the schema of type "number" of a changed`},
		{"a form", stone.Seq("a", leaf("b")), leaf("a"), "a/b was removed\nthe form of a changed from seq to leaf\nthe type of a changed from none to \"word\""},
		{"two of one name", stone.Seq("s", leaf("a")), stone.Seq("s", leaf("a"), leaf("a")), "s/a#2 was added"},
		{"what a reduce wraps", stone.Seq("s", stone.Reduce(leaf("a"))), stone.Seq("s", stone.Reduce(count("a"))), `the type of s/a changed from "word" to "number"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(journal.Changes(journal.Shape(c.before), journal.Shape(c.now)), "\n")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.before.Fingerprint() != c.now.Fingerprint() && got == "" {
				t.Error("the fingerprint changed, and nothing tells why")
			}
		})
	}
}

func TestShapeOfManyParts(t *testing.T) {
	steps := make([]stone.Ashlar, 10_000)
	for i := range steps {
		steps[i] = leaf("a")
	}
	if parts := journal.Shape(stone.Seq("s", steps...)); parts != nil {
		t.Errorf("a pipeline of 10,001 parts has a shape of %d, want none", len(parts))
	}
	if parts := journal.Shape(stone.Seq("s", steps[1:]...)); len(parts) != 10_000 {
		t.Errorf("a pipeline of 10,000 parts has a shape of %d", len(parts))
	}
}

func TestUsageOf(t *testing.T) {
	for content, want := range map[string]budget.Usage{
		``:                                   {},
		`"text with \"usage\":{ in it"`:      {},
		`{"usage":{"input-tokens":3}}`:       {InputTokens: 3},
		`{"usage":{"input-tokens":"three"}}`: {},
		`{"usage":7}`:                        {},
		`{"reply":{"usage":{"output_tokens":5}},"usage":{"output-tokens":5,"usd":0.5}}`: {OutputTokens: 5, USD: 0.5},
		`{"deep":{"usage":{"input-tokens":3}}}`:                                         {},
	} {
		if got := record.Usage(step.Record{Content: []byte(content)}); got != want {
			t.Errorf("UsageOf(%s) = %+v, want %+v", content, got, want)
		}
	}
}
