package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/text"
)

// A measure compares an actual value with the expected one.
type measure func(got, want json.RawMessage) (Score, error)

// exact returns the score 1 for equal texts or equal JSON values, otherwise 0.
func exact(got, want json.RawMessage) (Score, error) {
	if s, ok := asString(want); ok {
		return passed(textOf(got) == s, got, want), nil
	}
	same, err := equal(got, want)
	return passed(same, got, want), err
}

// normalised returns the score 1 for texts that differ at most in case, white space and punctuation, otherwise 0.
func normalised(got, want json.RawMessage) (Score, error) {
	return passed(plain(textOf(got)) == plain(textOf(want)), got, want), nil
}

// contains returns, as the score, the share of the expected texts that occur in the answer. The expected output is one text or a
// list of texts.
func contains(got, want json.RawMessage) (Score, error) {
	wanted := []json.RawMessage{want}
	if trimmed := bytes.TrimSpace(want); len(trimmed) > 0 && trimmed[0] == '[' {
		if err := json.Unmarshal(want, &wanted); err != nil {
			return Score{}, err
		}
	}
	if len(wanted) == 0 {
		return Score{}, errors.New("the expectation is an empty list")
	}
	found, missing := 0, ""
	for _, w := range wanted {
		if strings.Contains(plain(textOf(got)), plain(textOf(w))) {
			found++
		} else if missing == "" {
			missing = "missing " + shown(w)
		}
	}
	return Score{Value: float64(found) / float64(len(wanted)), Reason: missing}, nil
}

// within returns a measure whose score is 1 for numbers that differ by at most the tolerance, otherwise 0. In a text, the last
// number counts.
func within(tolerance float64) measure {
	return func(got, want json.RawMessage) (Score, error) {
		w, ok := numberOf(want)
		if !ok {
			return Score{}, fmt.Errorf("the expectation %s has no number", shown(want))
		}
		g, ok := numberOf(got)
		if !ok {
			return Score{Reason: "no number in " + shown(got)}, nil
		}
		return passed(math.Abs(g-w) <= tolerance, got, want), nil
	}
}

func passed(ok bool, got, want json.RawMessage) Score {
	if ok {
		return Score{Value: 1}
	}
	if have, need, err := leaves(got, want); err == nil && len(have.order) > 1 && len(need.order) > 1 {
		for _, l := range need.order { // for two objects, report the first field that differs
			if have.values[l] != need.values[l] {
				return Score{Reason: fmt.Sprintf("%s: got %s, want %s", l, shown([]byte(have.values[l])), shown([]byte(need.values[l])))}
			}
		}
	}
	return Score{Reason: fmt.Sprintf("got %s, want %s", shown(got), shown(want))}
}

// shown formats a value for use in a reason.
func shown(v json.RawMessage) string {
	if len(v) == 0 {
		return "nothing"
	}
	return text.Cut(text.Line(string(v)), 60)
}

func asString(v json.RawMessage) (s string, ok bool) {
	return s, len(v) > 0 && v[0] == '"' && json.Unmarshal(v, &s) == nil
}

// textFields are the fields of an answer that may contain its text.
var textFields = []string{"text", "content"}

// textOf returns the text of an answer: the answer itself if it is a string, the field text or content if it is an object with
// such a field, and otherwise the answer as JSON.
func textOf(v json.RawMessage) string {
	if s, ok := asString(v); ok {
		return s
	}
	var o map[string]json.RawMessage
	if json.Unmarshal(v, &o) == nil {
		for _, field := range textFields {
			if s, ok := asString(o[field]); ok {
				return s
			}
		}
	}
	return string(v)
}

// plain returns the words of a text in lower case, without surrounding punctuation.
func plain(s string) string {
	words := strings.Fields(strings.ToLower(s))
	kept := words[:0]
	for _, w := range words {
		if w = strings.TrimFunc(w, func(r rune) bool { return unicode.IsPunct(r) && r != '-' || r == '`' }); w != "" {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}

var number = regexp.MustCompile(`-?(\d+(,\d{3})+|\d+)?(\.\d+)?([eE][-+]?\d+)?`)

// numberOf returns the number that a value is or, for a text, the last number in it, and whether there is one.
func numberOf(v json.RawMessage) (float64, bool) {
	var n float64
	if json.Unmarshal(v, &n) == nil && len(v) > 0 && v[0] != 'n' {
		return n, true
	}
	found := number.FindAllString(textOf(v), -1)
	for i := len(found) - 1; i >= 0; i-- {
		if n, err := strconv.ParseFloat(strings.ReplaceAll(found[i], ",", ""), 64); err == nil {
			return n, true
		}
	}
	return 0, false
}

func equal(a, b json.RawMessage) (bool, error) {
	x, err := canon.AppendJSON(nil, a)
	if err != nil {
		return false, err
	}
	y, err := canon.AppendJSON(nil, b)
	return bytes.Equal(x, y), err
}
