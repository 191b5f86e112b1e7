package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/suggest"
)

// Read returns the scorers that the given strings describe. Each string is KIND, KIND:ARGUMENT or NAME=KIND:ARGUMENT, or the name
// of an .edn or .json file that contains a list of {:name :kind :argument :node :of :expected}. The kinds are:
//
//	exact            the same text, or the same JSON value
//	normalised       the same words, whatever their case and punctuation
//	number:0.01      a number that differs by at most 0.01; in a text, the last number counts
//	contains         the share of the expected texts that are in the answer
//	json             the same JSON value
//	subset           every expected field has the expected value
//	fields           the F1 of the fields
//	schema:FILE      the answer matches the JSON Schema; needs no expected output
//	cel:EXPRESSION   true, false or a number, over input, output, expected, node and usage
//	command:FILE     a program, run confined, exits with 0 or prints a score; it reads the case as JSON
//	tools:order      the tools that an agent called: order, set or arguments
//	judge:RUBRIC     the score given by a judge; the rubric is a text or @FILE
//	pairwise:RUBRIC  a judge, called with both orders, prefers the answer to the expected output
//
// In a file, node is the type of a node that is scored instead of the output, of is the path of the scored field, such as
// items.0.price, and expected is the path of the field in the expected output. The argument app provides the judges and the
// language of cel expressions. It may be nil if there are no such scorers.
func Read(app *call.Applicator, texts ...string) (all []Scorer, err error) {
	for _, text := range texts {
		specs := []scorerSpec{}
		switch ext := filepath.Ext(text); {
		case (ext == ".edn" || ext == ".json") && !strings.ContainsAny(text, ":="):
			specs, err = readSpecs(text)
		default:
			specs = append(specs, parseSpec(text))
		}
		if err != nil {
			return nil, err
		}
		for _, s := range specs {
			made, err := s.scorer(app)
			made.node, made.of = s.node, s.of
			if err != nil {
				return nil, fmt.Errorf("scorer %s: %w", s.name, err)
			}
			made.share = s.kind != "cel" && s.kind != "command" // these scorers may return any number
			all = append(all, made)
		}
	}
	return all, nil
}

// A scorerSpec is the description of a scorer.
type scorerSpec struct {
	name, kind, argument string
	node                 string // type of the node to be scored; "" for the output
	of, expected         string // paths of fields
}

var namedSpec = regexp.MustCompile(`^([A-Za-z0-9_-]+)=`)

func parseSpec(text string) (s scorerSpec) {
	rest := text
	if m := namedSpec.FindStringSubmatch(text); m != nil {
		s.name, rest = m[1], text[len(m[0]):]
	}
	s.kind, s.argument, _ = strings.Cut(rest, ":")
	if s.name == "" {
		s.name = s.kind
	}
	return s
}

func readSpecs(file string) (all []scorerSpec, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	value, err := edn.ReadEither(data, edn.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	faults := form.ReadValue(value, func(v form.Value) {
		v.Each(func(_ int, v form.Value) {
			v.Map(func(m *form.Map) {
				var s scorerSpec
				m.Need("kind")
				m.At("kind").Name(&s.kind)
				s.name = s.kind
				m.At("name").Text(&s.name)
				m.At("argument").Text(&s.argument)
				m.At("node").Text(&s.node)
				m.At("of").Text(&s.of)
				m.At("expected").Text(&s.expected)
				all = append(all, s)
			})
		})
	})
	if err := faults.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// measures lists the kinds of scorers that compare an answer with the expected output.
var measures = map[string]measure{
	"exact": exact, "normalised": normalised, "contains": contains,
	"json": sameJSON, "subset": subset, "fields": fields,
}

var kindNames = []string{"exact", "normalised", "number", "contains", "json", "subset", "fields", "schema", "cel", "command", "tools", "judge", "pairwise"}

func (s scorerSpec) scorer(app *call.Applicator) (Scorer, error) {
	if m, ok := measures[s.kind]; ok {
		if s.argument != "" {
			return Scorer{}, fmt.Errorf("unexpected argument %q", s.argument)
		}
		return s.comparing(m), nil
	}
	switch s.kind {
	case "number":
		tolerance := 0.0
		if s.argument != "" {
			var err error
			if tolerance, err = strconv.ParseFloat(s.argument, 64); err != nil || tolerance < 0 || math.IsInf(tolerance, 0) {
				return Scorer{}, fmt.Errorf("the tolerance %q is not a number of at least 0", s.argument)
			}
		}
		return s.comparing(within(tolerance)), nil
	case "schema":
		return s.schema()
	case "cel":
		return s.cel(app)
	case "command":
		return s.command()
	case "tools":
		if toolMeasures[s.argument] == nil {
			return Scorer{}, fmt.Errorf("%q: want tools:order, tools:set or tools:arguments", s.argument)
		}
		return s.expecting(scoreTools(s.argument, s.node)), nil
	case "judge", "pairwise":
		return s.judge(app)
	}
	if near := suggest.Closest(s.kind, slices.Values(kindNames)); near != "" {
		return Scorer{}, fmt.Errorf("unknown kind %q: did you mean %s?", s.kind, near)
	}
	return Scorer{}, fmt.Errorf("unknown kind %q: want one of %s", s.kind, strings.Join(kindNames, ", "))
}

// leafOf returns a scorer whose version is derived from all its settings.
func (s scorerSpec) leafOf(fn func(context.Context, Case) (Score, error), options ...stone.LeafOption) Scorer {
	return scoring(s.name, s.node, fn, append(options, stone.Version(fmt.Sprintf("%q", s)))...)
}

func (s scorerSpec) comparing(m measure) Scorer {
	scorer := s.expecting(func(c Case, want json.RawMessage) (Score, error) {
		got, err := s.got(c)
		if err != nil {
			return Score{Reason: err.Error()}, nil
		}
		return m(got, want)
	})
	scorer.whole = (s.kind == "exact" || s.kind == "json") && s.node == "" && s.of == "" && s.expected == ""
	return scorer
}

// expecting returns a scorer for cases that have an expected output.
func (s scorerSpec) expecting(score func(c Case, want json.RawMessage) (Score, error)) Scorer {
	scorer := s.leafOf(func(_ context.Context, c Case) (Score, error) {
		want, err := s.want(c)
		if err != nil {
			return Score{}, err
		}
		return score(c, want)
	})
	scorer.needs = true
	return scorer
}

// got returns the value to be scored. It returns an error if the answer does not contain the value, so that the answer is wrong.
func (s scorerSpec) got(c Case) (json.RawMessage, error) {
	v := c.Output
	if s.node != "" {
		if v = c.Nodes[s.node]; v == nil {
			return nil, fmt.Errorf("the pipeline produced no node of type %q", s.node)
		}
	}
	return lookup(v, s.of)
}

func (s scorerSpec) want(c Case) (json.RawMessage, error) {
	if c.Expected == nil {
		return nil, errors.New("the row has no expectation: the column expected, or the one that --expected names")
	}
	return lookup(c.Expected, s.expected)
}

// needsProcess is the effect of scorers that start a program.
var needsProcess = stone.Effects(effect.Process)
