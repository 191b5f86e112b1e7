package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/address"
)

// scrolled is the position of a transcript's visible part. It is identified by a block and a line in the block, so that the
// text stays in place while more arrives.
type scrolled struct {
	away bool // the window is not at the end; otherwise the other fields are unused
	top  int  // id of the block that contains the first line shown
	row  int  // index of this line within the block
	read int  // bytes of the block above this line, without spaces; independent of wrapping

	only string // place whose blocks are shown; "" for all
}

// rows returns the lines of a block.
func (t *transcript) rows(b *block) []line {
	if b.lines != nil {
		return b.lines
	}
	if b.space {
		b.lines = append(b.lines, line{})
	}
	if b.head != "" {
		b.lines = append(b.lines, line{oneLine(b.head), bold})
	}
	text := strings.TrimRight(string(b.text), " \n") // more text may follow
	pieces := printable(text)
	if !b.short {
		pieces = wrap(text, t.width)
	}
	for _, s := range pieces {
		b.lines = append(b.lines, line{s, b.style})
	}
	return b.lines
}

// notice returns the line that is shown above all blocks if some have been dropped.
func (t *transcript) notice() []line {
	if t.dropped == 0 {
		return nil
	}
	return []line{{fmt.Sprintf("… the %d oldest lines are no longer kept", t.dropped), dim}}
}

// list returns the blocks of the selected place, or all blocks.
func (t *transcript) list() []*block {
	if t.only == "" {
		return t.blocks
	}
	var out []*block
	for _, b := range t.blocks {
		if at := address.Place(b.path); at == t.only || address.Within(at, t.only) {
			out = append(out, b)
		}
	}
	return out
}

func (t *transcript) height() int {
	n := len(t.notice())
	for _, b := range t.list() {
		n += len(t.rows(b))
	}
	return n
}

// first returns the index of the first line in a window of the given height.
func (t *transcript) first(lines int) int {
	end := max(0, t.height()-lines)
	if !t.away {
		return end
	}
	n := len(t.notice())
	for i, b := range t.list() {
		if i == 0 && b.id == t.top && t.row == 0 {
			return 0 // the notice is shown, too
		}
		if b.id >= t.top {
			if b.id == t.top {
				n += min(t.row, len(t.rows(b))-1)
			}
			return min(n, end)
		}
		n += len(t.rows(b))
	}
	return end
}

// scroll moves the window by n lines, downward if n is positive. At the end, the window follows new lines.
func (t *transcript) scroll(n, lines int) {
	at := max(0, t.first(lines)+n)
	if t.away = at < t.height()-lines; !t.away {
		return
	}
	at = max(0, at-len(t.notice()))
	for _, b := range t.list() {
		if rows := len(t.rows(b)); at >= rows {
			at -= rows
			continue
		}
		t.top, t.row, t.read = b.id, at, 0
		for _, l := range t.rows(b)[:at] {
			t.read += letters(l)
		}
		return
	}
}

// show returns the lines of the window, and the number of lines below it.
func (t *transcript) show(lines int) (shown []line, below int) {
	skip := t.first(lines)
	below = max(0, t.height()-skip-lines)
	take := func(rows []line) {
		n := min(skip, len(rows))
		skip -= n
		rows = rows[n:]
		shown = append(shown, rows[:min(len(rows), lines-len(shown))]...)
	}
	take(t.notice())
	for _, b := range t.list() {
		if len(shown) >= lines {
			break
		}
		take(t.rows(b))
	}
	return shown, below
}

// resize wraps all lines again. The first visible line remains the first.
func (t *transcript) resize(width int) {
	if width == t.width {
		return
	}
	t.width = width
	for _, b := range t.blocks {
		b.lines = nil
	}
	i := slices.IndexFunc(t.blocks, func(b *block) bool { return t.away && b.id == t.top })
	if i < 0 {
		return
	}
	rows, above := t.rows(t.blocks[i]), 0
	for t.row = 0; t.row < len(rows)-1 && above+letters(rows[t.row]) <= t.read; t.row++ {
		above += letters(rows[t.row])
	}
}

// letters returns a line's number of bytes without its spaces, which wrapping does not change.
func letters(l line) int { return len(l.text) - strings.Count(l.text, " ") }
