package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
)

// A layout describes how the screen is divided.
type layout struct {
	header, help     bool
	panel            panel
	treeWidth        int // 0 if the tree is above the transcript
	treeHeight       int
	rule             bool // a rule is drawn between the tree and the transcript below it
	transcriptWidth  int
	transcriptHeight int
}

// Sizes of the layout.
const (
	wide    = 84 // minimum number of columns at which the tree is beside the transcript
	minTree = 26
	maxTree = 44
	airy    = 16 // minimum number of lines at which a rule is drawn
)

func (m *model) layout() layout {
	l := layout{header: m.height > 1, help: m.height > 3, transcriptWidth: max(1, m.width)}
	body := m.height
	if l.header {
		body--
	}
	if l.help {
		body--
	}
	l.panel = m.panel(max(1, body-body/4))
	body = max(0, body-len(l.panel.lines))
	if m.width >= wide {
		l.treeWidth = min(max(m.width/3, minTree), maxTree)
		l.treeHeight, l.transcriptHeight = body, body
		l.transcriptWidth = m.width - l.treeWidth - 2
		return l
	}
	if l.rule = body >= airy; l.rule {
		body--
	}
	l.treeHeight = len(m.picture(body / 3))
	l.transcriptHeight = body - l.treeHeight
	return l
}

// picture returns the tree on at most the given number of lines.
func (m *model) picture(lines int) []line {
	if lines < 1 || m.tree == nil {
		return nil
	}
	styles := map[view.State]style{view.Pending: dim, view.Running: cyan, view.Waiting: yellow, view.Done: green, view.Failed: red}
	var out []line
	for _, l := range m.tree.Picture(m.cfg.Now(), lines) {
		shown := line{invisible.Replace(l.Text), styles[l.State]}
		if l.Path != "" && l.Path == m.transcript.only {
			shown = line{"› " + shown.text, bold}
		}
		out = append(out, shown)
	}
	return out
}

// View draws the screen.
func (m *model) View() tea.View {
	l := m.layout()
	var out []string
	put := func(x line) { out = append(out, x.draw(m.width, false)) }
	if l.header {
		put(m.header())
	}
	shown, below := m.transcript.show(l.transcriptHeight)
	if len(shown) == 0 && m.transcript.only != "" {
		shown = []line{{"nothing was said or failed here; esc shows all steps", dim}}
	}
	tree := m.picture(l.treeHeight)
	at := func(lines []line, i int) line {
		if i < len(lines) {
			return lines[i]
		}
		return line{}
	}
	switch {
	case m.listed != nil:
		height := l.transcriptHeight
		if l.treeWidth == 0 {
			height = m.height - 2
		}
		below = max(len(m.listed)-height, 0)
		for _, text := range append(m.listed, make([]string, max(height, 0))...)[:max(height, 0)] {
			put(line{text: text})
		}
	case l.treeWidth > 0:
		for i := range l.transcriptHeight {
			out = append(out, at(tree, i).draw(l.treeWidth, true)+line{"│ ", dim}.draw(2, true)+at(shown, i).draw(l.transcriptWidth, false))
		}
	default:
		for _, x := range tree {
			put(x)
		}
		if l.rule {
			put(line{strings.Repeat("─", m.width), dim})
		}
		for i := range l.transcriptHeight {
			put(at(shown, i))
		}
	}
	row := len(out) + len(l.panel.lines) - 1
	for _, x := range l.panel.lines {
		put(x)
	}
	if l.help {
		put(m.help(below))
	}
	v := tea.NewView(strings.Join(out[:min(len(out), m.height)], "\n"))
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
	if c := m.input.Cursor(); len(l.panel.lines) > 0 && c != nil {
		c.Y = row
		v.Cursor = c
	}
	return v
}

// header returns the line that shows the state of the run.
func (m *model) header() line {
	now := m.cfg.Now()
	x := line{style: cyan}
	spent, mark := progress.Duration(m.spent), view.Running
	var word string
	switch m.state {
	case refused:
		word, spent, x.style, mark = "is invalid", "", red, view.Failed
	case ready:
		word, spent, mark = "has not started", "", view.Pending
	case running:
		word, spent = "running", progress.Duration(now.Sub(m.began))
	case canceling:
		word, spent, x.style = "canceling", progress.Duration(now.Sub(m.began)), yellow
	case done:
		word, x.style, mark = "done in", green, view.Done
	case broke:
		word, x.style, mark = "failed after", red, view.Failed
	}
	state := strings.TrimSpace("  " + word + " " + spent)
	name := text.Cut(oneLine(m.cfg.Pipeline.Name()), max(8, m.width-text.Width(state)-4))
	x.text = fmt.Sprintf("%s %s  %s", progress.Mark(mark, now), name, state)
	parts := []string{m.result.RunID}
	if u := m.used; u != (budget.Usage{}) {
		parts = []string{"", "", m.result.RunID}
		if u.Tokens() > 0 {
			parts[0] = fmt.Sprintf("%s tokens in, %s out", count(u.InputTokens), count(u.OutputTokens))
		}
		if cost := money.USD(u.USD, u.Estimated); cost != "" {
			parts[1] = cost + " USD"
		}
	}
	for _, part := range parts {
		if part != "" && text.Width(x.text)+2+text.Width(part) <= m.width {
			x.text += "  " + oneLine(part)
		}
	}
	return x
}

// count formats a number of tokens.
func count(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// help returns the line that explains the keys and shows the number of lines below the window.
func (m *model) help(below int) line {
	var keys []string
	switch {
	case len(m.questions) > 0 && len(m.questions[0].Choices) > 0:
		keys = []string{"type or ↑↓ to choose", "enter answer", "ctrl+d no answer"}
	case len(m.questions) > 0:
		keys = []string{"enter answer", "ctrl+d no answer"}
	case m.busy():
		keys = []string{"ctrl+c cancel"}
		if m.state == canceling {
			keys = []string{"ctrl+c leave at once"}
		}
	case m.state == ready:
		keys = []string{"enter run", "q leave"}
	default:
		keys = []string{"q leave", "r run again"}
	}
	if len(m.questions) > 1 {
		keys = append(keys, "tab next question")
	}
	keys = append(keys, "pgup/pgdn scroll")
	if len(m.questions) == 0 {
		if keys = append(keys, "j/k step"); m.cfg.Runs != nil {
			keys = append(keys, "l runs")
		}
		keys = append(keys, "? keys")
	}
	if below > 0 {
		keys = slices.Insert(keys, 0, fmt.Sprintf("↓ %d more lines", below))
	}
	return line{strings.Join(keys, " · "), dim}
}
