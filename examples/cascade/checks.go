package cascade

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"regexp"
	"strings"
)

// checks are checks that judge a solution without knowing the right answer.
var checks = map[string]func(solution string) error{"calculations-come-out": calculationsComeOut, "sensible-number": sensibleNumber}

// calculationsComeOut repeats every calculation of a solution.
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

// sensibleNumber accepts a whole number that is not below zero, if no intermediate result has thousandths.
func sensibleNumber(solution string) error {
	said := final.FindStringSubmatch(solution)
	if said == nil {
		return errors.New("it does not end in an answer")
	}
	if v, ok := evaluate(said[1]); !ok || v.Sign() < 0 || !v.IsInt() {
		return fmt.Errorf("%s is no number of things", said[1])
	}
	for _, chain := range calculations(solution) {
		if v, ok := evaluate(chain[len(chain)-1]); ok && !new(big.Rat).Mul(v, big.NewRat(100, 1)).IsInt() {
			return fmt.Errorf("it works with %s, which is neither whole nor cents", v.FloatString(3))
		}
	}
	return nil
}

var (
	marked = regexp.MustCompile(`<<([^<>]*)>>`)
	// plain matches a calculation in running text: arithmetic around an equals sign.
	plain = regexp.MustCompile(`[\d$(.][-\d$().,\s+*/x×÷%\\=]*=[-\d$().,\s+*/x×÷%\\=]*[\d)%]`)
	// final matches the answer in the form that the prompt requires.
	final = regexp.MustCompile(`####\s*\$?(-?[\d,]*\.?\d+)`)
	// foreign matches characters that do not belong to arithmetic, and numbers that are too long.
	foreign = regexp.MustCompile(`[^-0-9.+*/()% \t\r\n]|[0-9.]{41}`)
	percent = regexp.MustCompile(`([0-9.]+)\s*%`)
	leading = regexp.MustCompile(`(^|[^0-9.])0+([0-9])`)
)

// calculations returns the calculations of a solution, each a chain of expressions, as in 3 * 4 = 12.
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

// equal reports whether two numbers are equal. If one is not whole, it allows for rounding: half a percent, but at least a cent.
func equal(a, b *big.Rat) bool {
	if a.IsInt() && b.IsInt() {
		return a.Cmp(b) == 0
	}
	off := new(big.Rat).Abs(new(big.Rat).Sub(a, b))
	return off.Cmp(big.NewRat(1, 100)) <= 0 || off.Cmp(new(big.Rat).Quo(new(big.Rat).Abs(a), big.NewRat(200, 1))) <= 0
}

var replacer = strings.NewReplacer("$", "", ",", "", `\*`, "*", "x", "*", "×", "*", "÷", "/")

// evaluate computes an arithmetic expression as people write it: with $ and thousands separators, x or × for times, % for
// hundredths. It returns false for everything else, and for expressions that are too long. The rest is parsed by Go's parser.
func evaluate(expr string) (*big.Rat, bool) {
	expr = replacer.Replace(expr)
	if len(expr) > 1000 || foreign.MatchString(expr) {
		return nil, false
	}
	expr = strings.ReplaceAll(percent.ReplaceAllString(expr, "($1/100)"), "%", "/100")
	expr = leading.ReplaceAllString(strings.ReplaceAll(expr, "-", " - "), "$1$2") // avoids octal numbers and the operator --
	tree, err := parser.ParseExpr(strings.Join(strings.Fields(expr), " "))
	if err != nil {
		return nil, false
	}
	return rational(tree)
}

var operations = map[token.Token]func(z, a, b *big.Rat) *big.Rat{
	token.ADD: (*big.Rat).Add, token.SUB: (*big.Rat).Sub, token.MUL: (*big.Rat).Mul, token.QUO: (*big.Rat).Quo,
}

func rational(e ast.Expr) (*big.Rat, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return new(big.Rat).SetString(e.Value)
	case *ast.ParenExpr:
		return rational(e.X)
	case *ast.UnaryExpr:
		v, ok := rational(e.X)
		if !ok || e.Op != token.SUB {
			return nil, false
		}
		return v.Neg(v), true
	case *ast.BinaryExpr:
		a, ok := rational(e.X)
		b, also := rational(e.Y)
		op := operations[e.Op]
		if !ok || !also || op == nil || e.Op == token.QUO && b.Sign() == 0 {
			return nil, false
		}
		return op(new(big.Rat), a, b), true
	}
	return nil, false
}
