package page

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// within is a page of a search for words in the names, prompts and results of a run's steps.
type within struct {
	Words  string
	Hits   []found
	After  int64 // position after which the search begins
	Next   int64 // position after which the search continues; 0 if it is complete
	Looked int   // number of steps with a result that were searched
}

// found is a step that contains the words.
type found struct {
	Name, URL            string
	In                   string // "name", "failure", "prompt" or "result"
	Before, Found, After string
	kind                 string // kind of the row
}

// Limits per page for a search within a run. With these limits, a page takes 0.2 seconds.
const (
	mostHits       = 50
	mostSearched   = 2500     // results searched
	bytesSearched  = 16 << 20 // bytes of contents searched
	aroundHit      = 90       // bytes of text shown on each side of a hit
	mostSearchText = 200      // maximum bytes of the words
)

// searchWithin searches the rows of a run after a position, up to the limits of a page. Each step is found at most once: in its
// name when it starts, or in its failure, its prompt or its result.
func searchWithin(ctx context.Context, v View, run *view.Run, words string, after int64) (*within, error) {
	w := &within{Words: strings.TrimSpace(words), After: after}
	if len(w.Words) > mostSearchText {
		return nil, unreadable("the search has %d bytes: want at most %d", len(w.Words), mostSearchText)
	}
	pattern, err := regexp.Compile("(?i)" + regexp.QuoteMeta(w.Words))
	if err != nil {
		return nil, unreadable("the search is not UTF-8")
	}
	last, err := v.Journal.Last(ctx, run.ID)
	if err != nil || after >= last {
		return w, err
	}
	left := bytesSearched
	for r, err := range v.Journal.Follow(ctx, run.ID, after) {
		if err != nil {
			return nil, err
		}
		size, err := w.read(ctx, v, run, pattern, r)
		if err != nil {
			return nil, err
		}
		if left -= size; r.Seq >= last { // in a running run, Follow would wait for more
			break
		}
		if w.Looked == mostSearched || left <= 0 || len(w.Hits) == mostHits {
			w.Next = r.Seq
			break
		}
	}
	return w, nil
}

// read searches a row and returns the size of the content it has read.
func (w *within) read(ctx context.Context, v View, run *view.Run, pattern *regexp.Regexp, r journal.Row) (size int, err error) {
	path, in := r.Path, "result"
	if r.Kind == "value" { // a value has no page
		path, in = address.Parent(path), "prompt"
	}
	name, err := run.Lanes.Shown(ctx, path)
	if err != nil {
		return 0, err
	}
	name = address.Readable(name)
	look := func(in, where string) bool {
		return w.look(pattern, found{Name: name, URL: stepURL(run.ID, path), In: in, kind: r.Kind}, where)
	}
	if !r.Ended || r.From != "" { // a reused result has no start
		if r.Kind != "value" && look("name", address.Last(name)) || !r.Ended {
			return 0, nil
		}
	}
	w.Looked++
	if r.Failure != "" && look("failure", r.Failure+": "+r.Reason) {
		return 0, nil
	}
	rec, err := view.Record(ctx, v.Journal, run.ID, r.Path, r.Kind)
	if rec == nil {
		return 0, err
	}
	if sent := view.SentIn(*rec); sent != nil && look("prompt", sent.System+"\n"+sent.Input) {
		return len(rec.Content), nil
	}
	content := []byte(rec.Content)
	if out := view.OutIn(content); out != nil {
		content = out
	}
	look(in, spoken(content))
	return len(rec.Content), nil
}

// look adds the first place in a text that contains the words, unless the step has already been found. It reports whether there
// is such a place.
func (w *within) look(pattern *regexp.Regexp, one found, where string) bool {
	at := pattern.FindStringIndex(where)
	if at == nil {
		return false
	}
	if one.kind == "value" || !slices.ContainsFunc(w.Hits, func(f found) bool { return f.URL == one.URL && f.kind == one.kind }) {
		one.Found = where[at[0]:at[1]]
		one.Before, one.After = flat(where[max(at[0]-aroundHit, 0):at[0]]), flat(where[at[1]:min(at[1]+aroundHit, len(where))])
		w.Hits = append(w.Hits, one)
	}
	return true
}

// flat puts a part of a text on one line, and keeps the spaces around it.
func flat(part string) string {
	return strings.Trim(text.Line("|"+strings.ToValidUTF8(part, "")+"|"), "|")
}

// escaped replaces the escape sequences of JSON strings by their characters.
var escaped = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`)

// spoken returns a content in the form in which a person would search for it.
func spoken(content []byte) string { return escaped.Replace(text.JSON(string(content))) }
