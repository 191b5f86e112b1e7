package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/stonelayer/stone/ask"
)

// key handles a key.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	l := m.layout()
	if m.listed != nil {
		if m.listed = nil; k.String() == "?" || k.String() == "l" {
			return nil
		}
	} else if len(m.questions) == 0 {
		switch {
		case k.String() == "?":
			m.listed = keyList
			return nil
		case k.String() == "l" && m.cfg.Runs != nil:
			m.listed = m.cfg.Runs(m.width)
			return nil
		}
	}
	switch k.String() {
	case "ctrl+c":
		return m.interrupt("Ctrl-C")
	case "ctrl+z":
		return tea.Suspend
	case "pgup":
		m.page(l, -1)
		return nil
	case "pgdown":
		m.page(l, 1)
		return nil
	}
	if len(m.questions) > 0 {
		return m.answerKey(k)
	}
	switch k.String() {
	case "j":
		m.choosePlace(l, 1)
	case "k":
		m.choosePlace(l, -1)
	case "esc":
		m.transcript.only, m.transcript.away = "", false
	case "up":
		m.scroll(-1)
	case "down":
		m.scroll(1)
	case "home":
		m.scroll(-m.transcript.height())
	case "end":
		m.scroll(m.transcript.height())
	case "q":
		if !m.busy() {
			return tea.Quit
		}
	case "enter":
		if m.state == ready {
			return m.launch()
		}
	case "r":
		if !m.busy() && m.state != ready {
			m.scroll(m.transcript.height())
			return m.start()
		}
	}
	return nil
}

// choosePlace selects the next or the previous row of the tree, whose conversation and failures are then shown.
func (m *model) choosePlace(l layout, by int) {
	var places []string
	for _, row := range m.tree.Picture(m.cfg.Now(), l.treeHeight) {
		if row.Path != "" {
			places = append(places, row.Path)
		}
	}
	if len(places) == 0 {
		return
	}
	at := slices.Index(places, m.transcript.only)
	if at < 0 && by < 0 {
		at = len(places)
	}
	m.transcript.only, m.transcript.away = places[min(max(at+by, 0), len(places)-1)], false
}

// keyList is the list of keys that is shown to the person.
var keyList = []string{
	"↑ ↓ pgup pgdn    scroll", "home end         first and last line", "j k              next and previous step of the tree: shows what it said and why it failed",
	"esc              all steps", "r                run again", "l                the last runs", "ctrl+c           cancel the run", "ctrl+z           suspend", "q                leave", "?                these keys",
}

// page scrolls by one page. It scrolls the question if that does not fit on the screen, otherwise the transcript.
func (m *model) page(l layout, by int) {
	if q := l.panel; q.hidden > 0 {
		m.above = min(max(0, m.above+by*max(1, q.page-1)), q.hidden)
		return
	}
	m.scroll(by * max(1, l.transcriptHeight-1))
}

func (m *model) scroll(n int) { m.transcript.scroll(n, m.layout().transcriptHeight) }

// answerKey handles a key while a question is open. No choice is preselected, so
// Enter alone never answers.
func (m *model) answerKey(k tea.KeyPressMsg) tea.Cmd {
	q := m.questions[0]
	switch k.String() {
	case "ctrl+d":
		m.answer("")
	case "tab":
		m.questions = append(m.questions[1:], q)
		m.show()
	case "up", "down":
		m.arrow(k.String() == "down")
	case "enter":
		m.enter()
		if m.state == ready && len(m.questions) == 0 {
			return m.start()
		}
	default:
		return m.typed(k)
	}
	return nil
}

// arrow moves the selection or, if the question has no choices, the transcript. The first press selects the first choice or, for
// the up arrow, the last.
func (m *model) arrow(down bool) {
	last := len(m.questions[0].Choices) - 1
	switch {
	case last < 0 && down:
		m.scroll(1)
		return
	case last < 0:
		m.scroll(-1)
		return
	case down:
		m.choice = min(last, m.choice+1)
	case m.choice < 0:
		m.choice = last
	default:
		m.choice = max(0, m.choice-1)
	}
	m.input.Reset()
	m.refusal = ""
}

// enter answers the question, or sets m.refusal if it cannot.
func (m *model) enter() {
	q := m.questions[0]
	typed := m.input.Value()
	switch {
	case len(q.Choices) == 0 && typed != "":
		m.answer(typed)
	case len(q.Choices) == 0:
		m.refusal = "type an answer first, or press ctrl+d to give none"
	case m.choice >= 0:
		m.choose(q.Choices[m.choice], strings.TrimSpace(typed))
	case strings.TrimSpace(typed) == "":
		m.refusal = "choose first: type the beginning of a choice, or press ↑ or ↓"
	}
}

// choose answers with a choice. If the choice has a blank, the text for the blank must have been typed.
func (m *model) choose(choice, typed string) {
	before, blank := ask.Blank(choice)
	switch {
	case !blank:
		m.answer(choice)
	case ask.Chosen([]string{choice}, typed):
		m.answer(typed)
	default:
		m.input.SetValue(before)
		m.input.CursorEnd()
		m.refusal = "type the text in place of …"
	}
}

// typed passes typed or pasted text on to the input line. Text with which exactly one choice begins selects that choice.
func (m *model) typed(msg tea.Msg) tea.Cmd {
	if len(m.questions) == 0 {
		return nil
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	m.refusal = ""
	if choices := m.questions[0].Choices; len(choices) > 0 {
		m.choice, m.refusal = chosen(choices, strings.TrimSpace(m.input.Value()))
	}
	return cmd
}

// chosen returns the index of the choice that was typed, or of the only choice that begins with the typed text, ignoring case.
// Otherwise it returns -1 and the reason.
func chosen(choices []string, typed string) (at int, why string) {
	if typed == "" {
		return -1, ""
	}
	var fits []int
	for i, c := range choices {
		if ask.Chosen([]string{c}, typed) { // the typed text includes a text in place of the blank
			return i, ""
		}
		if len(c) >= len(typed) && strings.EqualFold(c[:len(typed)], typed) {
			fits = append(fits, i)
		}
	}
	switch len(fits) {
	case 0:
		return -1, fmt.Sprintf("no choice begins with %q", typed)
	case 1:
		return fits[0], ""
	}
	return -1, fmt.Sprintf("%d choices begin with %q: type more", len(fits), typed)
}

// open adds a question to the open questions.
func (m *model) open(q *question) {
	if q.Problem == "" {
		m.transcript.note(yellow, "", "? "+q.Name+": "+q.Text)
	}
	m.questions = append(m.questions, q)
	if len(m.questions) == 1 {
		m.show()
	}
}

// close removes a question from the open questions.
func (m *model) close(q *question) {
	for i, open := range m.questions {
		if open == q {
			m.questions = append(m.questions[:i:i], m.questions[i+1:]...)
			if i == 0 {
				m.show()
			}
			return
		}
	}
}

// show resets the input for the first open question.
func (m *model) show() {
	m.choice, m.refusal, m.above = -1, "", 0
	m.input.Reset()
	if len(m.questions) > 0 && m.questions[0].Problem != "" && m.questions[0].Path == m.answeredAt {
		m.input.SetValue(m.answered)
		m.input.CursorEnd()
	}
}

// answer answers the first open question.
func (m *model) answer(response string) {
	q := m.questions[0]
	if q.read != nil {
		if err := q.read(response); err != nil {
			m.refusal = err.Error()
			return
		}
		m.close(q)
		return
	}
	m.answered, m.answeredAt = response, q.Path
	q.answer <- response
	m.close(q)
}
