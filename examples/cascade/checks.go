package cascade

import (
	"errors"
	"fmt"
	"math/big"
)

// The checks judge a solution by itself. They know neither the right answer nor
// the question, and hold for any text that works a problem out in steps.
var checks = []struct {
	name string
	fn   func(solution string) error
}{
	{"ends-in-an-answer", endsInAnAnswer},
	{"calculations-come-out", calculationsComeOut},
	{"answer-follows", answerFollows},
	{"sensible-number", sensibleNumber},
}

var errNoAnswer = errors.New("it does not end in an answer")

// endsInAnAnswer finds solutions that were cut off, or that never come to a point.
func endsInAnAnswer(solution string) error {
	if _, ok := answer(solution); !ok {
		return errNoAnswer
	}
	return nil
}

// calculationsComeOut does every sum again.
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

// answerFollows compares the answer with what was worked out last: in marks, which
// often stand a few words before the end of a sentence, or in the text around them.
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

// sensibleNumber expects how many or how much there is of something: a whole
// number, not below zero, and nothing on the way to it in thousandths.
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
