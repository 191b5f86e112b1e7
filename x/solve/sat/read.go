package sat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/reasons"
)

// read reads the input of a request.
func read(input call.JSON, limits Config) (*formula, error) {
	var in struct {
		DIMACS     *string     `json:"dimacs"`
		Clauses    [][]literal `json:"clauses"`
		ExactlyOne [][]literal `json:"exactly-one"`
		AtMostOne  [][]literal `json:"at-most-one"`
		AtLeastOne [][]literal `json:"at-least-one"`
	}
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, invalid("the input is not a formula: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, invalid("the input is not a formula: text follows it")
	}
	readable := in.Clauses != nil || in.ExactlyOne != nil || in.AtMostOne != nil || in.AtLeastOne != nil
	if readable == (in.DIMACS != nil) {
		return nil, invalid(`the input must have either "dimacs", or some of "clauses", "exactly-one", "at-most-one", "at-least-one"`)
	}
	if in.DIMACS != nil {
		return readDIMACS(*in.DIMACS, limits)
	}
	b := builder{limits: limits, numbers: map[string]int{}}
	b.formula.clauses = append(b.all(in.Clauses), b.all(in.AtLeastOne)...)
	b.formula.exactlyOne = b.all(in.ExactlyOne)
	b.formula.atMost = b.all(in.AtMostOne)
	if b.err != nil {
		return nil, b.err
	}
	return &b.formula, nil
}

func invalid(format string, args ...any) error {
	return &call.Error{Type: reasons.InvalidRequest, Where: "input", Message: fmt.Sprintf(format, args...)}
}

// A literal is a name, with a leading "-" if negated, or a number.
type literal string

// UnmarshalJSON reads a string or an integer.
func (l *literal) UnmarshalJSON(text []byte) error {
	var s string
	if json.Unmarshal(text, &s) != nil {
		if _, err := strconv.Atoi(string(text)); err != nil {
			return fmt.Errorf(`a literal is a name as "a", or "-a", not %.40s`, text)
		}
		s = string(text)
	}
	if strings.TrimPrefix(s, "-") == "" || strings.HasPrefix(s, "--") {
		return fmt.Errorf("a literal is a name, or - and a name, not %q", s)
	}
	*l = literal(s)
	return nil
}

// A builder numbers variables in the order in which they are first used.
type builder struct {
	formula  formula
	limits   Config
	numbers  map[string]int
	literals int
	err      error
}

func (b *builder) all(lists [][]literal) [][]int {
	all := make([][]int, 0, len(lists))
	for _, list := range lists {
		if b.literals += len(list); b.literals > b.limits.Literals {
			b.err = tooLarge("literals", b.limits.Literals)
			return nil
		}
		numbers := make([]int, len(list))
		for i, l := range list {
			name, negated := strings.CutPrefix(string(l), "-")
			if b.numbers[name] == 0 {
				b.formula.names = append(b.formula.names, name)
				b.numbers[name] = len(b.formula.names)
			}
			if numbers[i] = b.numbers[name]; negated {
				numbers[i] *= -1
			}
		}
		all = append(all, numbers)
	}
	if len(b.formula.names) > b.limits.Variables {
		b.err = tooLarge("variables", b.limits.Variables)
	}
	return all
}

func tooLarge(what string, limit int) error {
	return &call.Error{Type: kindTooLarge, Where: "input", Message: fmt.Sprintf("the formula has more than %d %s", limit, what)}
}

// readDIMACS reads a formula in conjunctive normal form. Comments may be anywhere, and a clause may span several lines. A line
// with "%" ends the text, as in common benchmark collections.
func readDIMACS(text string, limits Config) (*formula, error) {
	var f formula
	variables, clauses, literals := 0, -1, 0
	var open []int
	line := 0
	for text := range strings.Lines(text) {
		line++
		fields := strings.Fields(text)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "c") {
			continue
		}
		if fields[0] == "%" {
			break
		}
		if fields[0] == "p" {
			if clauses >= 0 {
				return nil, invalid("line %d: a second line that starts with p", line)
			}
			var err error
			if variables, clauses, err = readHeader(fields); err != nil {
				return nil, invalid("line %d: %v", line, err)
			}
			if variables > limits.Variables {
				return nil, tooLarge("variables", limits.Variables)
			}
			continue
		}
		if clauses < 0 {
			return nil, invalid(`line %d: a clause before the line "p cnf VARIABLES CLAUSES"`, line)
		}
		for _, field := range fields {
			n, err := strconv.Atoi(field)
			if err != nil || field[0] == '+' {
				return nil, invalid("line %d: %.40q is not a literal", line, field)
			}
			if n > variables || n < -variables {
				return nil, invalid("line %d: literal %d, but the formula has %d variables", line, n, variables)
			}
			if n != 0 {
				open = append(open, n)
				continue
			}
			if literals += len(open); literals > limits.Literals {
				return nil, tooLarge("literals", limits.Literals)
			}
			if len(f.clauses) == clauses {
				return nil, invalid("line %d: more than the %d announced clauses", line, clauses)
			}
			f.clauses, open = append(f.clauses, open), nil
		}
	}
	switch {
	case clauses < 0:
		return nil, invalid(`line %d: the line "p cnf VARIABLES CLAUSES" is missing`, max(line, 1))
	case len(open) > 0:
		return nil, invalid("line %d: the last clause does not end with 0", line)
	case len(f.clauses) < clauses:
		return nil, invalid("line %d: the text ends after %d of the %d announced clauses", line, len(f.clauses), clauses)
	}
	for i := range variables {
		f.names = append(f.names, strconv.Itoa(i+1))
	}
	return &f, nil
}

func readHeader(fields []string) (variables, clauses int, err error) {
	wrong := errors.New("want p cnf VARIABLES CLAUSES")
	if len(fields) != 4 || fields[1] != "cnf" {
		return 0, 0, wrong
	}
	variables, err1 := strconv.Atoi(fields[2])
	clauses, err2 := strconv.Atoi(fields[3])
	if err1 != nil || err2 != nil || variables < 0 || clauses < 0 {
		return 0, 0, wrong
	}
	return variables, clauses, nil
}
