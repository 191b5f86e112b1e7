package openai

import (
	"strings"

	"github.com/stonelayer/stone/llm"
)

const (
	openTag  = "<think>"
	closeTag = "</think>"
)

// thinkReader separates thinking between tags from the text that follows it. A tag may be
// split over several pieces.
type thinkReader struct {
	past   bool   // whether the text, in which no tag is expected, has started
	inside bool   // whether the reader is between the tags
	held   string // text that may be the beginning of a tag
}

func (t *thinkReader) init(mode string) {
	t.past = mode == "keep"
	t.inside = mode == "open"
}

// add returns the pieces that the next piece of the content completes.
func (t *thinkReader) add(s string) []piece {
	var out []piece
	s, t.held = t.held+s, ""
	for s != "" {
		switch {
		case t.past:
			return append(out, piece{llm.Text, s})
		case t.inside:
			before, after, found := strings.Cut(s, closeTag)
			if !found {
				keep := partial(s, closeTag)
				t.held = s[len(s)-keep:]
				return append(out, piece{llm.Reasoning, s[:len(s)-keep]})
			}
			out = append(out, piece{llm.Reasoning, before})
			s, t.inside = after, false
		default:
			body := strings.TrimLeft(s, " \t\r\n")
			if strings.HasPrefix(openTag, body) {
				t.held = s // white space or an incomplete tag
				return out
			}
			after, found := strings.CutPrefix(body, openTag)
			if !found {
				t.past = true
				continue
			}
			out = append(out, piece{llm.Text, s[:len(s)-len(body)]})
			s, t.inside = after, true
		}
	}
	return out
}

// end returns the text that was held back.
func (t *thinkReader) end() []piece {
	s := t.held
	t.held = ""
	if t.inside {
		return []piece{{llm.Reasoning, s}}
	}
	return []piece{{llm.Text, s}}
}

// partial returns the length of the longest suffix of s that is a prefix of tag.
func partial(s, tag string) int {
	for n := min(len(tag)-1, len(s)); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
