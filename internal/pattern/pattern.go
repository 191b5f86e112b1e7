// Package pattern matches regular expressions that come from plans, schemas and servers. Package regexp takes time proportional to
// the size of the compiled pattern times the length of the text, and cannot be interrupted. This package limits that product, and
// a match can be canceled with a context.
//
// Patterns in JSON Schema are ECMA-262 regular expressions. Those that package regexp cannot compile, such as look-ahead, are
// matched by a backtracking engine with a time limit.
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
	// maxSize is the maximum number of instructions in a compiled pattern.
	maxSize = 10_000
	// maxWork limits the product of the pattern's instructions and the text's bytes in one match. At worst, such a match takes
	// about half a minute on one core.
	maxWork = 1 << 30
	// atOnce is the maximum work of a match that does not check the context.
	atOnce = 1 << 20
	// every is the number of runes after which a long match checks the context again.
	every = 1 << 8
)

// A Pattern is a compiled regular expression. It is safe for concurrent use.
type Pattern struct {
	compiled *regexp.Regexp
	size     int
	ecma     *regexp2.Regexp // used instead of compiled if not nil
}

// Compile compiles a pattern. It returns an error if the pattern is invalid or compiles to more than 10,000 instructions.
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

// Limits for a pattern that needs the backtracking engine: the size of the pattern's text and of the text to match, in bytes, and
// the duration of a match.
const (
	maxECMA     = 4 << 10
	maxECMAText = 1 << 20
	maxECMATime = time.Second
)

// MaxBacktracking is the maximum duration of a match by the backtracking engine. Callers that match many texts within one value
// must limit the total time.
const MaxBacktracking = maxECMATime

// Backtracks reports whether a match may take exponential time.
func (p *Pattern) Backtracks() bool { return p.ecma != nil }

// CompileECMA compiles an ECMA-262 pattern. Patterns that package regexp can compile are matched by that package.
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

// MatchString is like Match, without a context. It returns false if the match would take too much work.
func (p *Pattern) MatchString(text string) bool {
	ok, err := p.Match(context.Background(), text)
	return ok && err == nil
}

// Match reports whether text contains a match of the pattern. It returns an error if ctx is done, if the match would take too much
// work, or if backtracking has taken too long.
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

// A reader reads text. It ends early if the context is done.
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
