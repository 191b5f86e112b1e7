package page

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// A filter selects runs by words: state:failed pipeline:fix label:team=a usd>1 since:1d. Words without
// a name, or in quotes, are searched for in failures.
type filter []word

// A word is one condition of a filter. Text has no name.
type word struct{ Name, Value string }

// names lists the condition names.
var names = []string{"state", "pipeline", "label", "usd", "since", "until"}

// pattern matches one word of a filter.
var pattern = regexp.MustCompile(`^\s*(?:([a-z]+)(?::|>=?))?("(?:[^"\\]|\\.)*"|[^\s"]+)`)

// plainWord matches a value that needs no quotes after a name.
var plainWord = regexp.MustCompile(`^[^\s"\\=][^\s"\\]*$`)

// blank matches a condition that has no value.
var blank = regexp.MustCompile(`^[a-z]+(?::|>=?)$`)

// filterOf reads a filter.
func filterOf(text string) (out filter, err error) {
	const most = 1000 // bytes
	if len(text) > most {
		return nil, unreadable("the filter has %d bytes: want at most %d", len(text), most)
	}
	if !utf8.ValidString(text) {
		return nil, unreadable("the filter is not UTF-8")
	}
	for rest := text; strings.TrimSpace(rest) != ""; {
		m := pattern.FindStringSubmatch(rest)
		if m == nil {
			return nil, unreadable("the filter cannot be read from %s on: close the quotes", strings.TrimSpace(rest))
		}
		if blank.MatchString(m[2]) && m[1] == "" {
			return nil, unreadable("the filter has no value after %s, or quotes that are not closed", m[2])
		}
		rest = rest[len(m[0]):]
		w := word{m[1], m[2]}
		if strings.HasPrefix(w.Value, `"`) {
			if w.Value, err = strconv.Unquote(w.Value); err != nil {
				return nil, unreadable("%s cannot be read: in quotes, write \\\" for a quote and \\\\ for a backslash", m[2])
			}
		}
		if w.Name != "" && !slices.Contains(names, w.Name) {
			return nil, unreadable("no filter has the name %q, want %s; text with a colon stands in quotes%s", w.Name, strings.Join(names, ", "), suggest.Hint(w.Name, slices.Values(names)))
		}
		out = append(out, w)
	}
	return out, nil
}

// term writes a word of a filter, "" as its name for text.
func term(name, value string) string {
	if !plainWord.MatchString(value) || name == "" && (pattern.FindStringSubmatch(value)[1] != "" || blank.MatchString(value)) {
		value = strconv.Quote(value)
	}
	switch name {
	case "":
		return value
	case "usd":
		return "usd>" + value
	}
	return name + ":" + value
}

// String is the filter as a person writes it.
func (f filter) String() string {
	words := make([]string, len(f))
	for i, w := range f {
		words[i] = w.String()
	}
	return strings.Join(words, " ")
}

func (w word) String() string { return term(w.Name, w.Value) }

// URL is the address of the runs that the filter selects.
func (f filter) URL() string {
	if len(f) == 0 {
		return "/"
	}
	return "/?" + url.Values{"q": {f.String()}}.Encode()
}

// A chip is a condition of a filter, and the address of the runs without it.
type chip struct{ Text, Without string }

// Chips are the conditions.
func (f filter) Chips() (out []chip) {
	for i, w := range f {
		out = append(out, chip{w.String(), slices.Delete(slices.Clone(f), i, i+1).URL()})
	}
	return out
}

// listURL is the address of the runs that conditions select: names and values in turn. Those without a
// value are left out.
func listURL(conditions ...string) string {
	var f filter
	for i := 0; i+1 < len(conditions); i += 2 {
		if conditions[i+1] != "" {
			f = append(f, word{conditions[i], conditions[i+1]})
		}
	}
	return f.URL()
}

// query returns the query of the API that the filter stands for.
func (f filter) query(now time.Time) (url.Values, error) {
	out := url.Values{}
	var text []string
	for _, w := range f {
		switch w.Name {
		case "":
			text = append(text, w.Value)
		case "state":
			for _, state := range strings.Split(w.Value, ",") {
				if !slices.ContainsFunc(view.States, func(s journal.State) bool { return string(s) == state }) {
					return nil, unreadable("no run has the state %q: want %v", state, view.States)
				}
				out.Add("state", state)
			}
		case "label":
			name, value, ok := strings.Cut(w.Value, "=")
			if !ok {
				return nil, unreadable("the label %q has no value: want label:NAME=VALUE", w.Value)
			}
			out.Set("label."+name, value)
		case "usd":
			if usd, err := strconv.ParseFloat(w.Value, 64); err != nil || !(usd >= 0) || math.IsInf(usd, 1) {
				return nil, unreadable("%q is not an amount of USD: want a number, as usd>0.5", w.Value)
			}
			out.Set("min-usd", w.Value)
		case "since", "until":
			at, err := moment(w.Value, now, w.Name == "until")
			if err != nil {
				return nil, err
			}
			out.Set(w.Name, at.UTC().Format(time.RFC3339))
		default:
			out.Set(w.Name, w.Value)
		}
	}
	if len(text) > 0 {
		out.Set("text", strings.Join(text, " "))
	}
	return out, nil
}

// units are the units of an age.
var units = map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}

// moment reads a day, a time or an age. A day ends at its end.
func moment(text string, now time.Time, end bool) (time.Time, error) {
	if text == "today" {
		text = now.UTC().Format(time.DateOnly)
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		if end {
			day = day.AddDate(0, 0, 1)
		}
		return day, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if n := len(text) - 1; n > 0 && n < 6 {
		if age, err := strconv.Atoi(text[:n]); err == nil && age > 0 && units[text[n]] > 0 {
			return now.Add(-time.Duration(age) * units[text[n]]), nil
		}
	}
	return time.Time{}, unreadable("%q is not a time: want an age such as 30m, 12h, 1d or 2w, today, a day such as %s, or a time as in RFC 3339", text, now.UTC().Format(time.DateOnly))
}

func unreadable(format string, args ...any) *api.Problem {
	return &api.Problem{Type: problems.Invalid, Title: "Bad Request", Status: http.StatusBadRequest, Detail: fmt.Sprintf(format, args...)}
}
