package progress

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
)

// draw replaces the picture on the terminal. The caller must hold d.out.
func (d *Display) draw() {
	if d.paused > 0 || d.cfg.Size == nil {
		return
	}
	columns, lines := d.cfg.Size()
	picture := d.tree.Picture(d.cfg.Now(), lines-1)
	var frame bytes.Buffer
	d.erase(&frame)
	d.drawn = d.drawn[:0]
	for i, l := range picture {
		if i == 0 {
			l.Text += d.spent("  ")
		}
		line := text.Cut(l.Text, columns-1) // a full line would wrap
		d.drawn = append(d.drawn, text.Width(line))
		if d.cfg.Color {
			line = colors[l.State] + line + plainColor
		}
		frame.WriteString(line + clearLine + "\n")
	}
	frame.WriteString(clearBelow)
	d.write(frame.Bytes())
}

const (
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
	plainColor = "\x1b[0m"
)

// colors contains the escape sequences for dim, cyan, yellow, green and red.
var colors = map[view.State]string{view.Pending: "\x1b[2m", view.Running: "\x1b[36m", view.Waiting: "\x1b[33m", view.Done: "\x1b[32m", view.Failed: "\x1b[31m"}

// erase moves to the first line of the picture and clears everything from there on. If the terminal has become narrower since the
// lines were drawn, it has wrapped them.
func (d *Display) erase(frame *bytes.Buffer) {
	if len(d.drawn) == 0 {
		return
	}
	columns, lines := d.cfg.Size()
	height := 0
	for _, width := range d.drawn {
		height += max(1, (width+columns-1)/columns)
	}
	fmt.Fprintf(frame, "\r\x1b[%dA%s", min(height, lines), clearBelow)
	d.drawn = d.drawn[:0]
}

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// Mark returns the character that represents a state at a given time.
func Mark(s view.State, now time.Time) string {
	if s == view.Running {
		return string(spinner[now.UnixMilli()/redraw.Milliseconds()%int64(len(spinner))])
	}
	return view.Mark(string(s))
}

// A Line is a line in the picture of a tree, without color.
type Line struct {
	Text  string
	State view.State
	Path  string // path of the place in the pipeline; "" for the line that counts the omitted rows
}

// Picture returns a drawing of the tree with at most the given number of lines. If rows are omitted for lack of space, the last
// line says how many.
func (t *Tree) Picture(now time.Time, lines int) []Line {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows, more := t.visible(lines)
	picture := make([]Line, len(rows), len(rows)+1)
	for i, r := range rows {
		picture[i] = r.picture(now)
	}
	if more > 0 {
		picture = append(picture, Line{fmt.Sprintf("… and %d more", more), view.Pending, ""})
	}
	return picture
}

func (r *row) picture(now time.Time) Line {
	s := r.state()
	line := fmt.Sprintf("%s%s %s", strings.Repeat("  ", r.depth), Mark(s, now), text.Line(address.Readable(r.name)))
	if detail := r.detail(now); detail != "" {
		line += "  " + detail
	}
	return Line{line, s, r.path()}
}

func (r *row) state() view.State {
	switch {
	case r.running > 0:
		return view.Running
	case r.visits == 0 || !r.inLane && r.up != nil && r.up.running > 0 && r.began.Before(r.up.began):
		return view.Pending
	case r.ok || r.inLane && r.failed < r.visits:
		return view.Done
	case r.waits:
		return view.Waiting
	}
	return view.Failed
}

// finished returns the number of steps below r that have ended in the current visit to r.
func (r *row) finished() int {
	n := 0
	for _, below := range r.below {
		if s := below.state(); s == view.Done || s == view.Failed {
			n++
		}
	}
	return n
}

// detail returns the text that follows the name.
func (r *row) detail(now time.Time) string {
	if r.visits == 0 {
		return ""
	}
	parts := []string{r.counts()}
	if !r.inLane {
		if r.running > 0 {
			parts = append(parts, Duration(now.Sub(r.began)), r.left(now), r.names())
		} else {
			parts = append(parts, r.duration())
		}
	}
	if r.state() == view.Failed {
		parts = append(parts, r.kind)
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, "  ")
}

// counts returns the number of lanes, rounds or visits, or "" for a single one.
func (r *row) counts() string {
	var parts []string
	switch {
	case r.inLane:
		if ended := r.visits - r.running - r.failed; ended > 0 {
			parts = append(parts, fmt.Sprintf("%d done", ended))
		}
		if r.running > 0 {
			parts = append(parts, fmt.Sprintf("%d running", r.running))
		}
		if r.failed > 0 {
			parts = append(parts, fmt.Sprintf("%d failed", r.failed))
		}
	case r.fans():
		if r.lanes > 0 {
			parts = append(parts, fmt.Sprintf("%d/%d", r.ended, r.lanes))
		} else {
			parts = append(parts, fmt.Sprintf("%d lanes ended", r.ended))
		}
		if r.lost > 0 {
			parts = append(parts, fmt.Sprintf("%d lost", r.lost))
		}
	case r.form() == "loop" && r.round > 0:
		parts = append(parts, fmt.Sprintf("round %d", r.round))
	case r.visits > 1:
		parts = append(parts, fmt.Sprintf("×%d", r.visits))
	}
	if r.form() == "seq" && r.running > 0 && !r.inLane {
		parts = append(parts, fmt.Sprintf("%d/%d", r.finished(), len(r.below)))
	}
	return strings.Join(parts, ", ")
}

// Duration formats a duration with a precision suitable for people.
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// visible returns the rows to show on the given number of lines, and the number of rows omitted for lack of space. It first omits
// the contents of finished and pending steps, and then these steps themselves.
func (t *Tree) visible(lines int) (rows []*row, more int) {
	ways := []func(*row) (show, enter bool){
		func(*row) (bool, bool) { return true, true },
		func(r *row) (bool, bool) { s := r.state(); return true, s != view.Pending && s != view.Done },
		func(r *row) (bool, bool) {
			s := r.state()
			return s != view.Pending && s != view.Done, s == view.Running
		},
	}
	for _, way := range ways {
		if rows = list(nil, t.root, way, lines); len(rows) <= lines {
			return rows, 0
		}
	}
	rows = list(nil, t.root, ways[len(ways)-1], 1<<30)
	keep := max(0, lines-1)
	return rows[:keep], len(rows) - keep
}

// list appends the rows that way selects, and stops soon after the limit has been reached.
func list(rows []*row, r *row, way func(*row) (show, enter bool), limit int) []*row {
	show, enter := way(r)
	if show {
		rows = append(rows, r)
	}
	if !enter {
		return rows
	}
	for _, below := range r.below {
		if len(rows) > limit {
			break
		}
		rows = list(rows, below, way, limit)
	}
	return rows
}
