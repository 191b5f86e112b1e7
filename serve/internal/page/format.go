package page

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/filter"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/serve/api"
)

// functions are the template functions.
var functions = template.FuncMap{
	"colored":     colored,
	"clock":       func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
	"day":         func(t time.Time) string { return t.UTC().Format(time.DateOnly) },
	"instant":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"ago":         func(t time.Time) string { return ago(t, time.Now()) },
	"took":        took,
	"count":       count,
	"pause":       progress.Duration,
	"tokens":      func(u budget.Usage) string { return count(u.InputTokens + u.OutputTokens) },
	"usd":         func(u budget.Usage) string { return money.USD(u.USD, u.Estimated) },
	"cost":        func(t budget.Total) string { return money.Cost(t.USD, t.Estimated, t.Possible.USD) },
	"plural":      plural,
	"json":        func(raw json.RawMessage) string { return text.JSON(string(raw)) },
	"markdown":    markdown,
	"listURL":     filter.ListURL,
	"pipelineURL": pipelineURL,
	"score": func(f *float64) string {
		if f == nil {
			return ""
		}
		return strconv.FormatFloat(*f, 'g', 3, 64)
	},
	"estimate": estimate,
	"signed":   signed,
	"more":     func(f float64) string { return strings.Replace(money.Signed(f), "-", "−", 1) },
	"dollars":  func(f float64) string { return cmp.Or(money.USD(f, false), "0") },
	"minus":    func(a, b float64) float64 { return a - b },
	"inc":      func(i int) int { return i + 1 },
	"verdictState": func(v string) string {
		return cmp.Or(map[string]string{"passed": "done", "failed": "failed"}[v], "open")
	},
	"short":    func(id dag.ID) string { return id.String()[:12] },
	"zero":     func(id dag.ID) bool { return id == dag.ID{} },
	"runURL":   runURL,
	"chatURL":  chatURL,
	"stepURL":  stepURL,
	"nodeURL":  nodeURL,
	"readable": address.Readable,
	"mark":     func(s any) string { return view.Mark(fmt.Sprint(s)) },
}

// ago formats the age of a time. Beyond a month, it returns the date.
func ago(t, now time.Time) string {
	const day = 24 * time.Hour
	switch age := now.Sub(t); {
	case t.IsZero():
		return ""
	case age < 10*time.Second:
		return "now"
	case age < time.Minute:
		return fmt.Sprintf("%d s ago", age/time.Second)
	case age < time.Hour:
		return fmt.Sprintf("%d min ago", age/time.Minute)
	case age < day:
		return fmt.Sprintf("%d h ago", age/time.Hour)
	case age < 30*day:
		return fmt.Sprintf("%d d ago", age/day)
	}
	return t.UTC().Format(time.DateOnly)
}

// took formats the duration between two times, or until now if the end is unknown.
func took(from, to time.Time) string {
	if from.IsZero() {
		return ""
	}
	if to.IsZero() {
		to = time.Now()
	}
	return progress.Duration(max(to.Sub(from), 0))
}

// count formats a number with thin spaces between groups of three digits. Zero is "".
func count(n int) string {
	digits := strconv.Itoa(n)
	if n == 0 {
		return ""
	}
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}

// plural returns a number with a noun: "1 answer", "2 answers", "3 capabilities".
func plural(n int, one string) string {
	return cmp.Or(count(n), "0") + " " + text.Plurals(n, one)
}

func runURL(run string, query ...string) string {
	at := "/runs/" + url.PathEscape(run)
	if len(query) == 0 {
		return at
	}
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		if query[i+1] != "" {
			values.Set(query[i], query[i+1])
		}
	}
	return at + "?" + values.Encode()
}

func stepURL(run, path string) string {
	return "/runs/" + url.PathEscape(run) + "/step?" + url.Values{"path": {path}}.Encode()
}

func nodeURL(run string, id dag.ID) string {
	return "/runs/" + url.PathEscape(run) + "/nodes/" + id.String()
}

func pipelineURL(name string) string { return "/pipelines/" + url.PathEscape(name) }

func missing(format string, args ...any) *api.Problem {
	return &api.Problem{Type: problems.NotFound, Title: "Not Found", Status: 404, Detail: fmt.Sprintf(format, args...)}
}

// isMissing reports whether err is a not-found error, such as one that missing returns.
func isMissing(err error) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Status == 404
}

// jsonToken matches the JSON tokens that are colored: strings, which may be keys, words and numbers.
var jsonToken = regexp.MustCompile(`"(?:[^"\\]|\\.)*"(\s*:)?|-?\b(?:true|false|null|[0-9][0-9.eE+-]*)\b`)

// colored formats a content. In JSON, keys, strings and numbers are colored; any other text is unchanged.
func colored(content string) template.HTML {
	if !strings.ContainsAny(content[:min(len(content), 1)], "{[") || !json.Valid([]byte(content)) {
		return template.HTML(template.HTMLEscapeString(content))
	}
	var out strings.Builder
	last := 0
	for _, at := range jsonToken.FindAllStringSubmatchIndex(content, -1) {
		out.WriteString(content[last:at[0]]) // punctuation and white space
		tag, token := "i", content[at[0]:at[1]]
		switch {
		case at[2] >= 0:
			tag = "b"
		case token[0] == '"':
			tag = "q"
		}
		out.WriteString("<" + tag + ">" + template.HTMLEscapeString(token) + "</" + tag + ">")
		last = at[1]
	}
	out.WriteString(template.HTMLEscapeString(content[last:]))
	return template.HTML("<span class=\"json\">" + out.String() + "</span>")
}
