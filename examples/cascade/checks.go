package cascade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stonelayer/stone/call"
)

// A check judges a solution without knowing the right answer.
type check struct {
	name string
	fn   func(question, solution string) error
}

var checks = []check{
	{"ends-in-an-answer", func(_, s string) error { return endsInAnAnswer(s) }},
	{"calculations-come-out", func(_, s string) error { return calculationsComeOut(s) }},
	{"answer-follows", func(_, s string) error { return answerFollows(s) }},
	{"sensible-number", func(_, s string) error { return sensibleNumber(s) }},
	{"uses-the-numbers", usesTheNumbers},
}

// call is the check as a call.Check.
func (c check) call(_ context.Context, s call.Subject) error {
	var q Question
	var said Text
	if err := errors.Join(json.Unmarshal(s.Request.Input, &q), json.Unmarshal(s.Out, &said)); err != nil {
		return err
	}
	return c.fn(q.Text, said.Text)
}

// longest is the default of --longest. It was chosen on the dev split: see TestLongest.
const longest = 560

// atMost rejects long questions, which are harder.
func atMost(longest int, question string) error {
	if n := utf8.RuneCountInString(question); n > longest {
		return fmt.Errorf("the question has %d characters, more than %d", n, longest)
	}
	return nil
}

var number = regexp.MustCompile(`\d[\d,]*(\.\d+)?`)

// usesTheNumbers rejects solutions that ignore two or more numbers of the question.
func usesTheNumbers(question, solution string) error {
	used, unused := map[string]bool{}, map[string]bool{}
	for _, n := range number.FindAllString(solution, -1) {
		used[strings.ReplaceAll(n, ",", "")] = true
	}
	for _, n := range number.FindAllString(question, -1) {
		if n = strings.ReplaceAll(n, ",", ""); !used[n] {
			unused[n] = true
		}
	}
	if len(unused) > 1 {
		return fmt.Errorf("it uses none of %s", strings.Join(slices.Sorted(maps.Keys(unused)), ", "))
	}
	return nil
}

var errNoAnswer = errors.New("it does not end in an answer")

// endsInAnAnswer rejects solutions that were cut off or have no final answer.
func endsInAnAnswer(solution string) error {
	if _, ok := answer(solution); !ok {
		return errNoAnswer
	}
	return nil
}

// calculationsComeOut repeats every calculation.
func calculationsComeOut(solution string) error {
	for _, chain := range calculations(solution) {
		for i := 1; i < len(chain); i++ {
			a, ok := evaluate(chain[i-1])
			b, known := evaluate(chain[i])
			if ok && known && !equal(a, b) {
				return fmt.Errorf("%s is not %s", chain[i-1], chain[i])
			}
		}
	}
	return nil
}

// answerFollows compares the answer with the last result: in marks, which are often a
// few words before the end of a sentence, or in the text around them.
func answerFollows(solution string) error {
	said, ok := answer(solution)
	if !ok {
		return errNoAnswer
	}
	shown := "nothing"
	for _, result := range results(solution) {
		if equal(result, said) {
			return nil
		}
		shown = result.RatString()
	}
	return fmt.Errorf("it answers %s, but works out %s", said.RatString(), shown)
}

// sensibleNumber expects an amount: a whole number, not below zero, without thousandths
// in the results before it.
func sensibleNumber(solution string) error {
	said, ok := answer(solution)
	switch {
	case !ok:
		return errNoAnswer
	case said.Sign() < 0:
		return fmt.Errorf("%s is less than nothing", said.RatString())
	case !said.IsInt():
		return fmt.Errorf("%s is not whole", said.FloatString(3))
	}
	for _, chain := range calculations(solution) {
		if v, ok := evaluate(chain[len(chain)-1]); ok && !new(big.Rat).Mul(v, hundred).IsInt() {
			return fmt.Errorf("it works with %s, which is neither whole nor cents", v.FloatString(3))
		}
	}
	return nil
}
