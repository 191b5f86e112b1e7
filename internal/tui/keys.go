package tui

import (
	tea "charm.land/bubbletea/v2"
)

// key does what a key means.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	lines := m.layout().transcriptHeight
	switch k.String() {
	case "ctrl+c":
		return m.interrupt("Ctrl-C")
	case "ctrl+z":
		return tea.Suspend
	case "pgup":
		m.scroll(-max(1, lines-1))
		return nil
	case "pgdown":
		m.scroll(max(1, lines-1))
		return nil
	}
	if len(m.questions) > 0 {
		return m.answerKey(k)
	}
	switch k.String() {
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
	case "r":
		if !m.busy() {
			m.scroll(m.transcript.height())
			return m.start()
		}
	}
	return nil
}

func (m *model) scroll(n int) { m.transcript.scroll(n, m.layout().transcriptHeight) }

// answerKey does what a key means while a question is open.
func (m *model) answerKey(k tea.KeyPressMsg) tea.Cmd {
	q := m.questions[0]
	switch k.String() {
	case "ctrl+d":
		m.answer("")
		return nil
	case "tab":
		m.questions = append(m.questions[1:], q)
		m.show()
		return nil
	}
	if len(q.Choices) == 0 {
		switch k.String() {
		case "up":
			m.scroll(-1)
		case "down":
			m.scroll(1)
		case "enter":
			if m.input.Value() != "" {
				m.answer(m.input.Value())
			}
		default:
			return m.typed(k)
		}
		return nil
	}
	switch k.String() {
	case "up", "k":
		m.choice = max(0, m.choice-1)
	case "down", "j":
		m.choice = min(len(q.Choices)-1, m.choice+1)
	case "enter":
		m.answer(q.Choices[m.choice])
	}
	return nil
}

// typed passes what is typed or pasted on to the input line.
func (m *model) typed(msg tea.Msg) tea.Cmd {
	if len(m.questions) == 0 || len(m.questions[0].Choices) > 0 {
		return nil
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	return cmd
}

// open puts a question behind those that are open.
func (m *model) open(q *question) {
	if q.Problem == "" {
		m.transcript.note(yellow, "", "? "+q.Name+": "+q.Text)
	}
	m.questions = append(m.questions, q)
	if len(m.questions) == 1 {
		m.show()
	}
}

// close takes a question away.
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

// show begins with the first question anew.
func (m *model) show() {
	m.choice = 0
	m.input.Reset()
	if len(m.questions) > 0 && m.questions[0].Problem != "" && m.questions[0].Path == m.answeredAt {
		m.input.SetValue(m.answered)
		m.input.CursorEnd()
	}
}

// answer answers the first question.
func (m *model) answer(response string) {
	q := m.questions[0]
	m.answered, m.answeredAt = response, q.Path
	q.answer <- response
	m.close(q)
}
