package tui

import "fmt"

// A panel is the part of the screen that shows the open question. The answer is typed on the panel's last line.
type panel struct {
	lines  []line
	page   int // lines of the question that are shown
	hidden int // number of lines that are not shown
}

// panel lays out the first open question on at most the given number of lines. If there is not enough space, only a part of the
// question and of its choices is shown, with the number of lines that are hidden.
func (m *model) panel(lines int) panel {
	if len(m.questions) == 0 {
		return panel{}
	}
	q := m.questions[0]
	title := "? " + q.Name
	if n := len(m.questions); n > 1 {
		title += fmt.Sprintf(" (1 of %d)", n)
	}
	var p panel
	text, problem := m.wrapped(title+": "+q.Text, yellow), m.problem()
	lines-- // one line is for the answer
	problem = problem[:min(len(problem), max(0, lines-1))]
	lines -= len(problem)
	choices, at := m.choices()
	space := min(len(choices), max(lines/2, lines-len(text)))
	p.page = min(len(text), lines-space)
	p.hidden = len(text) - p.page
	from := min(m.above, p.hidden)
	p.lines = append(p.lines, text[from:from+p.page]...)
	if left := p.hidden - from; left > 0 && p.page > 1 {
		p.lines[p.page-1] = line{fmt.Sprintf("… %d more lines: pgdn", left+1), bold}
	}
	p.lines = append(p.lines, window(choices, at, space)...)
	p.lines = append(p.lines, problem...)
	p.lines = append(p.lines, line{oneLine(m.input.View()), plain})
	return p
}

// problem returns lines that explain why the last answer was refused.
func (m *model) problem() []line {
	switch q := m.questions[0]; {
	case m.refusal != "":
		return m.wrapped(m.refusal, red)
	case q.Problem != "":
		return m.wrapped(q.Problem, red)
	}
	return nil
}

// wrapped wraps a text at the width of the screen.
func (m *model) wrapped(text string, s style) (out []line) {
	for _, l := range wrap(text, m.width) {
		out = append(out, line{l, s})
	}
	return out
}

// choices returns the lines of the choices, and the index at which the selected choice begins.
func (m *model) choices() (out []line, at int) {
	for i, c := range m.questions[0].Choices {
		mark, s := "  ", plain
		if i == m.choice {
			mark, s, at = "› ", bold, len(out)
		}
		for _, l := range wrap(c, m.width-len("  ")) {
			out = append(out, line{mark + l, s})
			mark = "  "
		}
	}
	return out, at
}

// window returns the given number of lines around the line at index at.
func window(all []line, at, lines int) []line {
	from := min(max(0, at-lines/2), max(0, len(all)-lines))
	out := append([]line(nil), all[from:min(len(all), from+lines)]...)
	if n := len(out); n > 2 && from+lines < len(all) {
		out[n-1] = line{fmt.Sprintf("  … %d more: ↓", len(all)-from-n+1), dim}
	}
	return out
}
