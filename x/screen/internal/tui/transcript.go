package tui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/view"
)

// Limits of a transcript.
const (
	maxText   = 1 << 20 // maximum number of bytes kept
	maxBlocks = 4000

	fullBlock  = 8 << 10  // number of bytes after which a block ends at the end of its paragraph
	burstBlock = 32 << 10 // number of bytes after which a block ends at once
)

// A block is a piece of the transcript in one style.
type block struct {
	id    int    // ids increase
	head  string // line above the block; "" if the block continues the previous one
	space bool   // an empty line is shown above the block
	text  []byte
	style style
	short bool   // lines of the text are cut, not wrapped
	path  string // path of the agent or the failed step; "" for the run itself
	turn  int
	from  string // path of the events
	gone  bool   // the block is no longer in the transcript

	lines []line // lines at the width of the transcript; nil until they are needed
}

// A speaker is an agent that is working.
type speaker struct {
	turn  int
	model string
	open  *block   // block to which its text is appended; may be nil
	calls []*block // blocks of the calls in this turn; some may be nil
	news  *block   // block of a server's report; may be nil
	spoke bool     // a part of this turn has been shown
	from  string   // path of the speaker's events
}

// A transcript is the text of one or more runs. Its oldest blocks are dropped when it becomes too long.
type transcript struct {
	blocks   []*block
	speakers map[string]*speaker
	size     int
	next     int // id of the next block
	before   int // last id before the current run
	dropped  int // number of lines dropped
	width    int

	scrolled
}

// begin separates a run from earlier ones.
func (t *transcript) begin() {
	t.speakers, t.before = map[string]*speaker{}, t.next
}

// add appends a block.
func (t *transcript) add(b *block) *block {
	t.next++
	b.id = t.next
	b.space = b.space && len(t.blocks) > 0
	t.blocks = append(t.blocks, b)
	t.size += len(b.text)
	t.trim()
	return b
}

// note appends a text that does not come from an agent.
func (t *transcript) note(style style, head, text string) {
	t.add(&block{head: head, space: true, text: []byte(text), style: style})
}

// failure appends a note about a step.
func (t *transcript) failure(path string, style style, text string) {
	t.add(&block{path: path, turn: -1, space: true, text: []byte(text), style: style}) // the note belongs to no turn
}

// trim drops the oldest blocks beyond maxText and maxBlocks.
func (t *transcript) trim() {
	n := 0
	for (t.size > maxText || len(t.blocks)-n > maxBlocks) && n < len(t.blocks)-1 {
		b := t.blocks[n]
		t.size -= len(b.text)
		t.dropped += max(len(b.lines), 1+bytes.Count(b.text, []byte("\n")))
		b.gone = true
		n++
	}
	t.blocks = slices.Delete(t.blocks, 0, n)
}

// extend appends to the text of a block.
func (t *transcript) extend(b *block, s []byte) {
	b.text, b.lines = append(b.text, s...), nil
	if !b.gone {
		t.size += len(s)
		t.trim()
	}
}

// at returns the speaker at a path in a turn.
func (t *transcript) at(path string, turn int) *speaker {
	s := t.speakers[path]
	if s == nil {
		s = &speaker{}
		t.speakers[path] = s
	}
	if s.turn != turn {
		*s = speaker{turn: turn, model: s.model}
	}
	return s
}

// says appends a block of a speaker. The block has a heading if another speaker spoke before.
func (t *transcript) says(path string, s *speaker, b *block) *block {
	b.path, b.turn, b.from = path, s.turn, s.from
	var last block
	if n := len(t.blocks); n > 0 {
		last = *t.blocks[n-1]
	}
	if last.path != path || last.turn != s.turn {
		_, within, _ := strings.Cut(path, "/") // path without the name of the pipeline
		b.head = cmp.Or(within, path)
		if s.turn > 0 {
			b.head += fmt.Sprintf("  turn %d", s.turn)
		}
		if s.model != "" {
			b.head += "  " + s.model
		}
		b.space = true
	}
	s.spoke = true
	return t.add(b)
}

// take appends a piece of a speaker's text.
func (t *transcript) take(p *piece) {
	s := t.at(p.path, p.turn)
	s.from = p.from
	switch p.kind {
	case event.Text:
		t.say(p.path, s, plain, p.text)
	case event.Thinking:
		t.say(p.path, s, dim, p.text)
	case event.Refusal:
		t.say(p.path, s, yellow, p.text)
	case event.Arguments:
		if b := t.call(p.path, s, p.index, p.tool); len(b.text) < maxOneLine {
			t.extend(b, p.text)
		}
	}
}

// whole appends an answer that was not streamed, such as a recorded one.
func (t *transcript) whole(w whole) {
	s := t.at(w.path, w.turn)
	defer func() { s.open = nil }()
	if s.spoke {
		return
	}
	say := func(kind event.DeltaKind, text string) {
		t.take(&piece{path: w.path, turn: w.turn, kind: kind, text: []byte(text)})
	}
	say(event.Thinking, w.reply.Reasoning)
	say(event.Text, w.reply.Text)
	say(event.Refusal, w.reply.Refusal)
	var calls []struct {
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal([]byte(raw(w.reply.ToolCalls)), &calls); err != nil {
		return // tool calls are shown when they are executed
	}
	for i, c := range calls {
		t.take(&piece{path: w.path, turn: w.turn, kind: event.Arguments, index: i, tool: c.Name, text: c.Input})
	}
}

// say appends to the speaker's open block, or starts one.
func (t *transcript) say(path string, s *speaker, style style, text []byte) {
	b := s.open
	if b == nil || b.gone || b.style != style {
		if text = bytes.TrimLeft(text, "\n"); len(text) == 0 {
			return
		}
		s.open = t.says(path, s, &block{style: style, text: text})
		return
	}
	end := len(text)
	switch {
	case len(b.text) > burstBlock:
		end = 0
	case len(b.text) > fullBlock:
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			end = i
		}
	}
	if t.extend(b, text[:end]); end == len(text) {
		return
	}
	rest := bytes.TrimPrefix(text[end:], []byte("\n"))
	s.open = t.says(path, s, &block{style: style, text: rest})
}

// call returns the block of a tool call, and creates it if necessary.
func (t *transcript) call(path string, s *speaker, index int, name string) *block {
	index = min(max(index, 0), maxCalls)
	for len(s.calls) <= index {
		s.calls = append(s.calls, nil)
	}
	if s.calls[index] == nil {
		s.calls[index] = t.says(path, s, &block{style: cyan, short: true, text: []byte("→ " + oneLine(name) + " ")})
		s.open = nil
	}
	return s.calls[index]
}

// maxCalls is the maximum number of distinct calls per turn; further calls share a block.
const maxCalls = 1000

// result appends the outcome of a tool call.
func (t *transcript) result(c called) {
	s := t.at(c.path, c.turn)
	if i := c.position - 1; i >= len(s.calls) || i < 0 || s.calls[i] == nil {
		t.extend(t.call(c.path, s, i, c.name), []byte(c.in))
	}
	b := t.call(c.path, s, c.position-1, c.name)
	mark := view.Done
	if !c.ok {
		b.style, mark = yellow, view.Failed
	}
	text := fmt.Sprintf("%s\n  %s %s  %s", oneLine(string(b.text[:min(len(b.text), maxOneLine)])), view.Mark(string(mark)), progress.Duration(c.elapsed), oneLine(c.out))
	t.size -= len(b.text)
	b.text, b.lines = nil, nil
	t.extend(b, []byte(text))
}

// void dims text that has been retracted.
func (t *transcript) void(v voided) {
	here := false
	for _, b := range slices.Backward(t.blocks) {
		if b.id <= t.before {
			break
		}
		if b.from != "" && (v.from == b.from || v.Source == "" && v.Covers(v.from, b.from, "", 0)) {
			b.style, b.lines = dim, nil
			here = here || v.from == b.from
		}
	}
	if !here {
		return // the text belongs to a step whose failure is shown
	}
	s := t.at(v.path, v.turn)
	*s = speaker{turn: s.turn, model: s.model, from: v.from}
	text := "↻ retracted"
	if v.Source != "" {
		text = "↻ interrupted, the answer restarts"
	}
	t.says(v.path, s, &block{style: yellow, text: []byte(text + ": " + v.Reason)})
	s.spoke = false
}
