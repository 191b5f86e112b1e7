package progress

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/text"
)

// draw replaces the picture on the terminal. The caller holds out.
func (d *Display) draw() {
	if d.paused > 0 || d.cfg.Size == nil {
		return
	}
	columns, lines := d.cfg.Size()
	now := d.cfg.Now()
	d.mu.Lock()
	rows, more := d.tree.visible(lines - 1)
	picture := make([]string, 0, len(rows)+1)
	colors := make([]string, 0, len(rows)+1)
	for _, r := range rows {
		color, line := r.picture(now)
		picture, colors = append(picture, line), append(colors, color)
	}
	d.mu.Unlock()
	if more > 0 {
		picture, colors = append(picture, fmt.Sprintf("… and %d more", more)), append(colors, dim)
	}
	var frame bytes.Buffer
	d.erase(&frame)
	d.drawn = d.drawn[:0]
	for i, line := range picture {
		line = text.Cut(line, columns-1) // a full line would wrap
		d.drawn = append(d.drawn, text.Width(line))
		if d.cfg.Color {
			line = colors[i] + line + plainColor
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
	red        = "\x1b[31m"
	green      = "\x1b[32m"
	cyan       = "\x1b[36m"
	dim        = "\x1b[2m"
)

// erase moves to the first line of the picture and clears from there. Terminals
// that became narrower since have wrapped the lines.
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

// picture returns a row as it is drawn.
func (r *row) picture(now time.Time) (color, line string) {
	var mark rune
	switch r.state() {
	case pending:
		mark, color = '·', dim
	case running:
		mark, color = spinner[now.UnixMilli()/redraw.Milliseconds()%int64(len(spinner))], cyan
	case done:
		mark, color = '✓', green
	case failed:
		mark, color = '✗', red
	}
	line = fmt.Sprintf("%s%c %s", strings.Repeat("  ", r.depth), mark, text.Line(r.name))
	if detail := r.detail(now); detail != "" {
		line += "  " + detail
	}
	return color, line
}

type state uint8

const (
	pending state = iota
	running
	done
	failed
)

func (r *row) state() state {
	switch {
	case r.running > 0:
		return running
	case r.visits == 0 || r.stale():
		return pending
	case r.ok || r.inLane && r.failed < r.visits:
		return done
	}
	return failed
}

// stale reports whether all visits were in earlier rounds of a loop around r.
func (r *row) stale() bool {
	return !r.inLane && r.up != nil && r.up.running > 0 && r.began.Before(r.up.began)
}

// finished counts the steps below r that have ended in its current visit.
func (r *row) finished() int {
	n := 0
	for _, below := range r.below {
		if s := below.state(); s == done || s == failed {
			n++
		}
	}
	return n
}

// detail is what stands after the name.
func (r *row) detail(now time.Time) string {
	if r.visits == 0 {
		return ""
	}
	parts := []string{r.counts()}
	if !r.inLane {
		spent := r.spent
		if r.running > 0 {
			spent = now.Sub(r.began)
		}
		parts = append(parts, duration(spent))
	}
	if r.state() == failed {
		parts = append(parts, r.kind)
	}
	return strings.TrimSpace(strings.Join(parts, "  "))
}

// counts says how many lanes, rounds or visits there were, "" for a single one.
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

// duration prints with the precision that a person wants to read.
func duration(d time.Duration) string {
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

// visible returns the rows for a screen of so many lines, and how many it leaves
// out for lack of space. If not all fit, what lies inside finished and pending
// steps goes first, then these steps themselves.
func (t *tree) visible(lines int) (rows []*row, more int) {
	ways := []func(*row) (show, enter bool){
		func(*row) (bool, bool) { return true, true },
		func(r *row) (bool, bool) { return true, r.state() == running || r.state() == failed },
		func(r *row) (bool, bool) { s := r.state(); return s == running || s == failed, s == running },
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

// list collects rows, and stops soon after there are more than the limit.
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
