// Package pattern matches regular expressions that come from plans, schemas and servers. Package regexp takes time proportional
// to the size of the program times the length of the text, and cannot be interrupted. This package limits both, and a context can
// end a match.
//
// Patterns of JSON Schema are ECMA-262. Patterns that package regexp cannot compile, such as look-ahead, are matched by a
// backtracking engine with a time limit.
package pattern

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

const (
	// maxSize is the largest number of instructions of a compiled pattern.
	maxSize = 10_000
	// maxWork limits the product of instructions and runes in one match: at worst, about half a minute on one core.
	maxWork = 1 << 30
	// atOnce is the work done without checking the context.
	atOnce = 1 << 20
	// every is the number of runes after which a long match checks the context.
	every = 1 << 8
)

// A Pattern is a regular expression, safe for concurrent use.
type Pattern struct {
	compiled *regexp.Regexp
	size     int
	ecma     *regexp2.Regexp // in place of compiled
}

// Compile compiles a pattern. A pattern with more than 10,000 instructions is an error.
func Compile(text string) (*Pattern, error) {
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if n := len(prog.Inst); n > maxSize {
		return nil, fmt.Errorf("the pattern compiles to %d instructions, at most %d are allowed: write a shorter one, with smaller repetitions", n, maxSize)
	}
	return &Pattern{compiled: compiled, size: len(prog.Inst)}, nil
}

// Limits for a pattern that needs the backtracking engine: the size of its text in bytes, the size of the text to match, and the
// duration of a match.
const (
	maxECMA     = 4 << 10
	maxECMAText = 1 << 20
	maxECMATime = time.Second
)

// MaxBacktracking is the maximum time of a match that backtracks. Callers that match many texts of one value must limit their
// total time.
const MaxBacktracking = maxECMATime

// Backtracks reports whether a match may take exponential time.
func (p *Pattern) Backtracks() bool { return p.ecma != nil }

// CompileECMA compiles a pattern of ECMA-262. Package regexp matches all that it can compile.
func CompileECMA(text string) (*Pattern, error) {
	p, err := Compile(text)
	if _, ok := errors.AsType[*syntax.Error](err); !ok {
		return p, err
	}
	if len(text) > maxECMA {
		return nil, fmt.Errorf("the pattern has %d bytes, at most %d are allowed for one that package regexp does not know: %w", len(text), maxECMA, err)
	}
	ecma, other := regexp2.Compile(text, regexp2.ECMAScript, regexp2.Unicode)
	if other != nil {
		return nil, fmt.Errorf("%w (as ECMA-262: %s)", err, strings.ReplaceAll(other.Error(), "\n", " "))
	}
	ecma.MatchTimeout = maxECMATime
	return &Pattern{ecma: ecma}, nil
}

// String returns the text of the pattern.
func (p *Pattern) String() string {
	if p.ecma != nil {
		return p.ecma.String()
	}
	return p.compiled.String()
}

// MatchString is Match without a context. It returns false if the match takes too much
// work.
func (p *Pattern) MatchString(text string) bool {
	ok, err := p.Match(context.Background(), text)
	return ok && err == nil
}

// Match reports whether the pattern matches somewhere in the text. It returns an error if ctx ends, or if the size of the pattern
// times the length of the text is too large.
func (p *Pattern) Match(ctx context.Context, text string) (bool, error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	if p.ecma != nil {
		return p.backtrack(text)
	}
	work := int64(p.size) * int64(len(text))
	if work <= atOnce {
		return p.compiled.MatchString(text), nil
	}
	if work > maxWork {
		return false, fmt.Errorf("matching %d bytes against a pattern of %d instructions takes too much work: bound the length of the text, or simplify the pattern", len(text), p.size)
	}
	r := &reader{ctx: ctx, text: strings.NewReader(text)}
	ok := p.compiled.MatchReader(r)
	return ok && r.err == nil, r.err
}

func (p *Pattern) backtrack(text string) (bool, error) {
	if len(text) > maxECMAText {
		return false, fmt.Errorf("matching %d bytes against a pattern that needs backtracking takes too much work: bound the length of the text, or simplify the pattern", len(text))
	}
	ok, err := p.ecma.MatchString(text)
	if err != nil {
		return false, fmt.Errorf("matching %d bytes takes more than %v or too much memory: simplify the pattern", len(text), maxECMATime)
	}
	return ok, nil
}

// A reader ends its text when its context ends.
type reader struct {
	ctx  context.Context
	text *strings.Reader
	n    int
	err  error
}

func (r *reader) ReadRune() (rune, int, error) {
	if r.n++; r.n%every == 0 {
		if r.err = context.Cause(r.ctx); r.err != nil {
			return 0, 0, io.EOF
		}
	}
	return r.text.ReadRune()
}
