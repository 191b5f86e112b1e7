// Package filter parses the conditions with which people select runs, such as state:failed pipeline:fix label:team=a usd>1
// since:1d. The web pages and the command use the same conditions.
package filter

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// A Filter is a list of conditions that selects runs. A word without a name, or in quotes, is searched for in the runs' failures.
type Filter []Word

// A Word is one condition of a filter. The Name is empty for a search term.
type Word struct{ Name, Value string }

// names lists the condition names.
var names = []string{"state", "pipeline", "label", "usd", "since", "until"}

// pattern matches one word of a filter.
var pattern = regexp.MustCompile(`^\s*(?:([a-z]+)(?::|>=?))?("(?:[^"\\]|\\.)*"|[^\s"]+)`)

// plainWord matches a value that needs no quotes after a name.
var plainWord = regexp.MustCompile(`^[^\s"\\=][^\s"\\]*$`)

// inAPI matches a label condition in the notation of the API.
var inAPI = regexp.MustCompile(`^label\.[^=]+=`)

// blank matches a condition without a value.
var blank = regexp.MustCompile(`^[a-z]+(?::|>=?)$`)

// Parse parses a filter.
func Parse(text string) (out Filter, err error) {
	const most = 1000 // bytes
	if len(text) > most {
		return nil, fmt.Errorf("the filter has %d bytes: want at most %d", len(text), most)
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("the filter is not UTF-8")
	}
	for rest := text; strings.TrimSpace(rest) != ""; {
		m := pattern.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("the filter has an unclosed quote at %s: close it", strings.TrimSpace(rest))
		}
		if blank.MatchString(m[2]) && m[1] == "" {
			return nil, fmt.Errorf("the filter has no value after %s, or quotes that are not closed", m[2])
		}
		rest = rest[len(m[0]):]
		w := Word{m[1], m[2]}
		if m[1] == "" && inAPI.MatchString(m[2]) {
			w = Word{"label", strings.TrimPrefix(m[2], "label.")}
		}
		if strings.HasPrefix(w.Value, `"`) {
			if w.Value, err = strconv.Unquote(w.Value); err != nil {
				return nil, fmt.Errorf("%s cannot be read: in quotes, write \\\" for a quote and \\\\ for a backslash", m[2])
			}
		}
		if w.Name != "" && !slices.Contains(names, w.Name) {
			return nil, fmt.Errorf("unknown filter %q: want %s; put text with a colon in quotes%s", w.Name, strings.Join(names, ", "), suggest.Hint(w.Name, slices.Values(names)))
		}
		out = append(out, w)
	}
	return out, nil
}

// term returns the text of a condition. For a search term, name is "".
func term(name, value string) string {
	if !plainWord.MatchString(value) || name == "" && (pattern.FindStringSubmatch(value)[1] != "" || blank.MatchString(value) || inAPI.MatchString(value)) {
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

// String returns the filter in the notation that Parse reads.
func (f Filter) String() string {
	words := make([]string, len(f))
	for i, w := range f {
		words[i] = w.String()
	}
	return strings.Join(words, " ")
}

func (w Word) String() string { return term(w.Name, w.Value) }

// URL returns the URL of the page that lists the selected runs.
func (f Filter) URL() string {
	if len(f) == 0 {
		return "/"
	}
	return "/?" + url.Values{"q": {f.String()}}.Encode()
}

// A Chip is a condition of a filter, together with the URL of the list of runs without this condition.
type Chip struct{ Text, Without string }

// Chips returns the filter's conditions, each with the URL of the list without it.
func (f Filter) Chips() (out []Chip) {
	for i, w := range f {
		out = append(out, Chip{w.String(), slices.Delete(slices.Clone(f), i, i+1).URL()})
	}
	return out
}

// ListURL returns the URL of the list of runs that the conditions select. The arguments are pairs of name and value. Conditions
// with an empty value are omitted.
func ListURL(conditions ...string) string {
	var f Filter
	for i := 0; i+1 < len(conditions); i += 2 {
		if conditions[i+1] != "" {
			f = append(f, Word{conditions[i], conditions[i+1]})
		}
	}
	return f.URL()
}

// Values returns the API query that corresponds to the filter.
func (f Filter) Values(now time.Time) (url.Values, error) {
	out := url.Values{}
	var text []string
	for _, w := range f {
		switch w.Name {
		case "":
			text = append(text, w.Value)
		case "state":
			for _, state := range strings.Split(w.Value, ",") {
				if !slices.ContainsFunc(view.States, func(s journal.State) bool { return string(s) == state }) {
					return nil, fmt.Errorf("unknown state %q: want one of %v", state, view.States)
				}
				out.Add("state", state)
			}
		case "label":
			name, value, ok := strings.Cut(w.Value, "=")
			if !ok {
				return nil, fmt.Errorf("the label %q has no value: want label:NAME=VALUE", w.Value)
			}
			out.Set("label."+name, value)
		case "usd":
			if usd, err := strconv.ParseFloat(w.Value, 64); err != nil || !(usd >= 0) || math.IsInf(usd, 1) {
				return nil, fmt.Errorf("%q is not an amount of USD: want a number, such as usd>0.5", w.Value)
			}
			out.Set("min-usd", w.Value)
		case "since", "until":
			at, err := moment(w.Value, now, w.Name == "until")
			if err != nil {
				return nil, err
			}
			out.Set(w.Name, at.UTC().Format(time.RFC3339Nano))
		default:
			out.Set(w.Name, w.Value)
		}
	}
	if len(text) > 0 {
		out.Set("text", strings.Join(text, " "))
	}
	return out, nil
}

// units are the units in which an age can be given.
var units = map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}

// moment returns the time that a day, a time or an age denotes. If a day ends a period, the period includes that day.
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
	return time.Time{}, fmt.Errorf("%q is not a time: want an age such as 30m, 12h, 1d or 2w, today, a day such as %s, or a time in the format of RFC 3339", text, now.UTC().Format(time.DateOnly))
}

// MaxPage is the maximum number of runs that a page can contain.
const MaxPage = 1000

// Query returns the journal query for the parameters with which the API lists runs.
func Query(values url.Values) (journal.Query, error) {
	q := journal.Query{Labels: map[string]string{}, Limit: journal.DefaultLimit}
	for name, all := range values {
		value := all[len(all)-1]
		var err error
		switch {
		case name == "state":
			for _, v := range all {
				if q.States = append(q.States, journal.State(v)); !slices.Contains(view.States, journal.State(v)) {
					return q, fmt.Errorf("the state %q: want one of %v", v, view.States)
				}
			}
		case name == "pipeline":
			q.Pipeline = value
		case name == "text":
			q.Text = value
		case name == "min-usd":
			q.MinCost, err = strconv.ParseFloat(value, 64)
		case name == "since":
			q.Since, err = time.Parse(time.RFC3339, value)
		case name == "until":
			q.Until, err = time.Parse(time.RFC3339, value)
		case name == "ended-since":
			q.Ended, err = time.Parse(time.RFC3339, value)
		case name == "before":
			q.Before = value
		case name == "limit":
			if q.Limit, err = strconv.Atoi(value); err == nil && (q.Limit < 1 || q.Limit > MaxPage) {
				return q, fmt.Errorf("limit is %d: want 1 to %d", q.Limit, MaxPage)
			}
		case strings.HasPrefix(name, "label."): // the server replaces a tenant in the query with the caller's own
			q.Labels[strings.TrimPrefix(name, "label.")] = value
		default:
			return q, fmt.Errorf("unknown parameter %q: want state, pipeline, text, min-usd, since, until, ended-since, before, limit or label.NAME", name)
		}
		if err != nil {
			return q, fmt.Errorf("the parameter %s cannot be read: %v", name, err)
		}
	}
	return q, nil
}
