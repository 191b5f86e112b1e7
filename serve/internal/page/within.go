package page

import (
	"context"
	"regexp"
	"strings"

	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
)

// A search within a run finds words in the names, prompts and results of its steps.
type within struct {
	Words string
	Hits  []found
	Cut   bool // not everything was searched, or there are more hits
}

// found is where a step has the words.
type found struct {
	Name, URL            string
	In                   string // "name", "failure", "prompt" or "result"
	Before, Found, After string
}

// Bounds of a search within a run.
const (
	mostHits       = 50
	mostSearched   = 20_000   // steps
	bytesSearched  = 64 << 20 // of contents
	aroundHit      = 90       // bytes of the text on each side
	mostSearchText = 200      // bytes
)

// searchWithin searches a run, step by step. It looks at each step once: in its name, its failure, its prompt, its result.
func searchWithin(ctx context.Context, v View, run *view.Run, words string) (*within, error) {
	w := &within{Words: strings.TrimSpace(words)}
	if len(w.Words) > mostSearchText {
		return nil, unreadable("the search has %d bytes: want at most %d", len(w.Words), mostSearchText)
	}
	pattern, err := regexp.Compile("(?i)" + regexp.QuoteMeta(w.Words))
	if err != nil {
		return nil, unreadable("the search is not UTF-8")
	}
	looked, left := 0, bytesSearched
	for s, err := range v.Journal.EachStep(ctx, run.ID) {
		if err != nil {
			return nil, err
		}
		if looked++; looked > mostSearched || left <= 0 || len(w.Hits) == mostHits {
			w.Cut = true
			break
		}
		path := s.Path
		if s.Kind == "value" { // it has no page of its own
			path = address.Parent(path)
		}
		name, err := run.Lanes.Shown(ctx, path)
		if err != nil {
			return nil, err
		}
		name = address.Readable(name)
		look := func(in, where string) bool {
			return w.look(pattern, found{Name: name, URL: stepURL(run.ID, path), In: in}, where)
		}
		if s.Kind != "value" && look("name", address.Last(name)) || s.Failure != "" && look("failure", s.Failure+": "+s.Reason) || !s.Recorded {
			continue
		}
		rec, err := view.Record(ctx, v.Journal, run.ID, s.Path, s.Kind)
		if err != nil {
			return nil, err
		}
		if rec == nil {
			continue
		}
		left -= len(rec.Content)
		sent := view.SentIn(*rec)
		if sent != nil && look("prompt", sent.System+"\n"+sent.Input) {
			continue
		}
		in := "result"
		if s.Kind == "value" {
			in = "prompt"
		}
		content := []byte(rec.Content)
		if out := view.OutIn(content); out != nil {
			content = out
		}
		look(in, spoken(content))
	}
	return w, nil
}

// look adds the first place in a text that has the words, and reports whether there is one.
func (w *within) look(pattern *regexp.Regexp, one found, where string) bool {
	at := pattern.FindStringIndex(where)
	if at == nil {
		return false
	}
	one.Found = where[at[0]:at[1]]
	one.Before, one.After = flat(where[max(at[0]-aroundHit, 0):at[0]]), flat(where[at[1]:min(at[1]+aroundHit, len(where))])
	w.Hits = append(w.Hits, one)
	return true
}

// flat puts a part of a text on one line, with the blanks around it.
func flat(part string) string {
	return strings.Trim(text.Line("|"+strings.ToValidUTF8(part, "")+"|"), "|")
}

// escaped are the characters that JSON escapes in texts.
var escaped = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`)

// spoken returns a content as a person would search it.
func spoken(content []byte) string { return escaped.Replace(text.JSON(string(content))) }
