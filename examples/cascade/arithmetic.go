package cascade

import (
	"math/big"
	"regexp"
	"strings"
)

var (
	marked = regexp.MustCompile(`<<([^<>]*)>>`)
	// plain matches a calculation in running text: arithmetic around an equals sign.
	plain = regexp.MustCompile(`[\d$(.][-\d$().,\s+*/x×÷%\\=]*=[-\d$().,\s+*/x×÷%\\=]*[\d)%]`)
	// result matches the text after an equals sign.
	result = regexp.MustCompile(`=\s*\$?(-?[\d,]*\.?\d+)`)
	// final matches the answer in the form that the prompt requires.
	final = regexp.MustCompile(`####\s*\$?(-?[\d,]*\.?\d+)`)
)

var hundred = big.NewRat(100, 1)

// calculations returns the calculations that a solution shows, in their order:
// each a chain of expressions between equals signs, as in 3 * 4 = 12.
func calculations(solution string) [][]string {
	var out [][]string
	for line := range strings.Lines(solution) {
		for _, m := range marked.FindAllStringSubmatch(line, -1) {
			out = append(out, strings.Split(m[1], "="))
		}
		for _, m := range plain.FindAllString(marked.ReplaceAllString(line, ""), -1) {
			out = append(out, strings.Split(m, "="))
		}
	}
	return out
}

// results returns the last result in marks and the last one in the text around
// them.
func results(solution string) []*big.Rat {
	var inMarks strings.Builder
	for _, m := range marked.FindAllString(solution, -1) {
		inMarks.WriteString(m)
	}
	var out []*big.Rat
	for _, part := range []string{inMarks.String(), marked.ReplaceAllString(solution, "")} {
		if all := result.FindAllStringSubmatch(part, -1); all != nil {
			if v, ok := evaluate(all[len(all)-1][1]); ok {
				out = append(out, v)
			}
		}
	}
	return out
}

// answer returns the number at the end of a solution.
func answer(solution string) (*big.Rat, bool) {
	m := final.FindStringSubmatch(solution)
	if m == nil {
		return nil, false
	}
	return evaluate(m[1])
}

// equal allows for rounding where a number is not whole: half a percent, but at
// least a cent.
func equal(a, b *big.Rat) bool {
	if a.IsInt() && b.IsInt() {
		return a.Cmp(b) == 0
	}
	near := new(big.Rat).Quo(new(big.Rat).Abs(a), big.NewRat(200, 1))
	if cent := big.NewRat(1, 100); near.Cmp(cent) < 0 {
		near = cent
	}
	return new(big.Rat).Abs(new(big.Rat).Sub(a, b)).Cmp(near) <= 0
}

// evaluate computes an arithmetic expression as people write it: with $ and
// thousands separators, x or × for times, % for hundredths. It is false for
// everything else, and for expressions that are too long.
func evaluate(expr string) (*big.Rat, bool) {
	if len(expr) > 1000 {
		return nil, false
	}
	p := parser{rest: replacer.Replace(expr)}
	v, ok := p.sum()
	p.space()
	return v, ok && p.rest == ""
}

var replacer = strings.NewReplacer("$", "", ",", "", `\*`, "*", "x", "*", "×", "*", "÷", "/")

// parser is a recursive descent over the rest of an expression.
type parser struct{ rest string }

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// take consumes one of the operators.
func (p *parser) take(operators string) byte {
	p.space()
	if p.rest == "" || !strings.Contains(operators, p.rest[:1]) {
		return 0
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	return c
}

func (p *parser) sum() (*big.Rat, bool) {
	v, ok := p.product()
	for ok {
		var w *big.Rat
		switch p.take("+-") {
		case '+':
			if w, ok = p.product(); ok {
				v = new(big.Rat).Add(v, w)
			}
		case '-':
			if w, ok = p.product(); ok {
				v = new(big.Rat).Sub(v, w)
			}
		default:
			return v, true
		}
	}
	return nil, false
}

func (p *parser) product() (*big.Rat, bool) {
	v, ok := p.factor()
	for ok {
		var w *big.Rat
		switch p.take("*/") {
		case '*':
			if w, ok = p.factor(); ok {
				v = new(big.Rat).Mul(v, w)
			}
		case '/':
			if w, ok = p.factor(); ok && w.Sign() != 0 {
				v = new(big.Rat).Quo(v, w)
			} else {
				ok = false
			}
		default:
			return v, true
		}
	}
	return nil, false
}

// factor is a number, or a sum in parentheses, perhaps with a minus before it and
// a percent sign after it.
func (p *parser) factor() (v *big.Rat, ok bool) {
	if p.take("-") != 0 {
		if v, ok = p.factor(); ok {
			v = new(big.Rat).Neg(v)
		}
		return v, ok
	}
	if p.take("(") != 0 {
		if v, ok = p.sum(); !ok || p.take(")") == 0 {
			return nil, false
		}
	} else if v, ok = p.number(); !ok {
		return nil, false
	}
	if p.take("%") != 0 {
		v = new(big.Rat).Quo(v, hundred)
	}
	return v, true
}

func (p *parser) number() (*big.Rat, bool) {
	p.space()
	n := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789."))
	digits := p.rest[:n]
	if n == 0 || n > 40 || strings.Count(digits, ".") > 1 || digits == "." {
		return nil, false
	}
	p.rest = p.rest[n:]
	return new(big.Rat).SetString(digits)
}
