package cascade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/stonelayer/stone/call"
)

// A check judges a solution without knowing the right answer.
type check struct {
	name string
	fn   func(solution string) error
}

var checks = []check{
	{"ends-in-an-answer", endsInAnAnswer},
	{"calculations-come-out", calculationsComeOut},
	{"answer-follows", answerFollows},
	{"sensible-number", sensibleNumber},
}

// chosen is the default of --checks.
const chosen = "calculations-come-out,sensible-number"

// call is the check as a call.Check.
func (c check) call(_ context.Context, s call.Subject) error {
	var said Text
	if err := json.Unmarshal(s.Out, &said); err != nil {
		return err
	}
	return c.fn(said.Text)
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
