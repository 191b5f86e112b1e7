package openai

import (
	"cmp"
	"encoding/json"

	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/llm"
)

// annotation is a citation, whose positions are counted in characters of the text. Chat Completions nests the fields of a URL in
// an object.
type annotation struct {
	URL   string      `json:"url"`
	Title string      `json:"title"`
	File  string      `json:"file_id"`
	Name  string      `json:"filename"`
	Quote string      `json:"content"` // sent by some servers
	Start *int        `json:"start_index"`
	End   *int        `json:"end_index"`
	Chat  *annotation `json:"url_citation"`
}

// sources returns the citations of a text.
func sources(list []json.RawMessage, text string) (out []llm.Source) {
	chars := []rune(text)
	for _, raw := range list {
		var a annotation
		if jsonv2.UnmarshalLenient(raw, &a) != nil {
			continue
		}
		if a.Chat != nil {
			a = *a.Chat
		}
		s := llm.Source{URL: a.URL, Title: cmp.Or(a.Title, a.Name), File: a.File, Quote: a.Quote}
		if a.Start != nil && a.End != nil && 0 <= *a.Start && *a.Start < *a.End && *a.End <= len(chars) {
			s.Claim = string(chars[*a.Start:*a.End])
		}
		if s.URL != "" || s.File != "" {
			out = append(out, s)
		}
	}
	return out
}

// keepSources reads the citations and the searches of the finished items.
func (d *responsesDecoder) keepSources() {
	for _, it := range d.items {
		switch in := readItem(it.fields); in.Type {
		case "message":
			for _, p := range in.Content {
				d.reply.Sources = append(d.reply.Sources, sources(p.Annotations, p.Text)...)
			}
		case "web_search_call":
			if in.Status == "completed" {
				d.reply.Usage.Searches++
			}
		}
	}
}
