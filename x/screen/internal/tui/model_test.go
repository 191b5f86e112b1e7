package tui

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/exp/teatest/v2"
	"pgregory.net/rapid"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/display"
	"github.com/stonelayer/stone/internal/text"
)

var (
	word  = dag.NewType[string]("word")
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	sgr   = regexp.MustCompile(`\x1b\[[0-9;]*m`)
)

func say(name string) stone.Ashlar {
	return stone.Func0(name, word, func(context.Context) (string, error) { return name, nil })
}

// still is a model whose pipeline does not run: the test feeds it the items. Its
// clock is 12.3 s after the start.
func still(t testing.TB, width, height int) *model {
	t.Helper()
	now := start
	m := newModel(t.Context(), Config{
		Pipeline: stone.Seq("fix-package", say("read-issue"), stone.Loop("until-green", stone.Seq("try", say("fix"), say("go-test")), stone.Until(word, func(string) bool { return true }), 3), say("summarise")),
		Show:     func(stone.Result) string { return "" },
		Now:      func() time.Time { return now },
	}, &feed{})
	m.start()
	if m.state != running {
		t.Fatalf("the pipeline is refused: %v", m.err)
	}
	for _, path := range []string{"fix-package", "fix-package/read-issue", "-fix-package/read-issue", "fix-package/until-green",
		"fix-package/until-green[0]/try", "fix-package/until-green[0]/try/fix"} {
		e := event.Event{Path: path, Time: now, Data: event.StepStarted{Form: "leaf"}}
		if path[0] == '-' {
			e.Path, e.Data = path[1:], event.StepDone{Form: "leaf", OK: true, Elapsed: 40 * time.Millisecond}
		}
		m.tree.Note(e)
	}
	now = start.Add(12300 * time.Millisecond)
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return m
}

func (m *model) shown() string { return sgr.ReplaceAllString(m.View().Content, "") }

func press(m *model, keys ...string) (cmd tea.Cmd) {
	codes := map[string]tea.KeyPressMsg{
		"enter": {Code: tea.KeyEnter}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
		"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
		"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl},
	}
	for _, k := range keys {
		if msg, ok := codes[k]; ok {
			_, cmd = m.Update(msg)
			continue
		}
		for _, r := range k {
			_, cmd = m.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
	return cmd
}

const agentPath = "fix-package/until-green[0]/try/fix"

// conversation returns the items of an agent's two turns.
func conversation() []any {
	piece := func(turn int, kind event.DeltaKind, text string) *piece {
		return &piece{path: agentPath, turn: turn, from: fmt.Sprint(agentPath, "/turn-", turn), kind: kind, text: []byte(text)}
	}
	call := piece(1, event.Arguments, "")
	call.tool = "read_file"
	return []any{
		started{"run-1"}, entered{agentPath},
		asked{agentPath, "gpt-5-mini", 1},
		piece(1, event.Thinking, "The issue speaks of a nil map. I should look at the code before I say anything about it."),
		piece(1, event.Text, "I read the file.\n"),
		call, piece(1, event.Arguments, `{"path":`), piece(1, event.Arguments, `"map.go"}`),
		used{InputTokens: 1200, OutputTokens: 80, USD: 0.25},
		called{agentPath, 1, 1, "read_file", `{"path":"map.go"}`, "package m\n\nvar all map[string]int\n", true, 12 * time.Millisecond},
		failed{"no-luck", agentPath, "a test failed", 1},
		asked{agentPath, "gpt-5-mini", 2},
		piece(2, event.Text, "The map is never made: 地図は作られていません。\n\nI make it in "), piece(2, event.Text, "init."),
		used{InputTokens: 1500, OutputTokens: 260, USD: 0.125},
		left{agentPath},
	}
}

func question1() *question {
	return &question{Question: ask.Question{Name: "approve", Path: "fix-package/approve", Text: "Shall I write the patch to map.go?", Choices: []string{"yes", "no", "show it first"}}, answer: make(chan string, 1)}
}

func question2() *question {
	return &question{Question: ask.Question{Name: "which", Text: "Which package\nis it?"}, answer: make(chan string, 1)}
}

func TestFrames(t *testing.T) {
	for _, size := range []struct{ width, height int }{{100, 24}, {60, 20}, {40, 10}, {12, 4}} {
		t.Run(fmt.Sprintf("%dx%d", size.width, size.height), func(t *testing.T) {
			m := still(t, size.width, size.height)
			for _, item := range conversation() {
				m.take(item)
			}
			screens := m.shown()
			shot := func(title string) { screens += "\n===== " + title + "\n" + m.shown() }
			q := question1()
			m.take(q)
			shot("asked")
			press(m, "no")
			shot("choice")
			press(m, "enter")
			m.take(answered{"approve", <-q.answer})
			m.take(question2())
			press(m, "stone/dag")
			shot("question")
			press(m, "ctrl+c")
			m.take(withdrawn{m.questions[0]})
			shot("canceling")
			m.Update(ended{stone.Result{RunID: "run-1"}, stone.Fail("canceled", "the run was ended by Ctrl-C")})
			shot("failed")
			m.state = done
			m.transcript.note(plain, "result", "{\n  \"ok\": true\n}")
			press(m, "home")
			shot("from the top")
			teatest.RequireEqualOutput(t, []byte(screens))
		})
	}
}

func TestAnswers(t *testing.T) {
	m := still(t, 80, 24)
	a, b := question1(), question2()
	m.take(a)
	m.take(b)
	press(m, "down", "down", "down", "up", "tab") // b is before a now
	press(m, "x", "tab", "tab", "enter")          // nothing typed is no answer
	press(m, "dag q r", "enter")
	if got := <-b.answer; got != "dag q r" {
		t.Errorf("typed answer %q", got)
	}
	press(m, "enter", "down", "down", "enter") // enter alone is none
	if got := <-a.answer; got != "no" {
		t.Errorf("chosen answer %q", got)
	}
	if len(m.questions) > 0 {
		t.Fatal("answered questions are still open")
	}

	// A refused answer can be corrected.
	m.take(b)
	press(m, "12", "enter")
	<-b.answer
	again := question2()
	again.Problem = "not an answer: want JSON that fits the schema"
	m.take(again)
	if !strings.Contains(m.shown(), again.Problem) || !strings.Contains(m.shown(), "> 12") {
		t.Errorf("neither problem nor answer:\n%s", m.shown())
	}
	m.Update(tea.PasteMsg{Content: "3\n"})
	press(m, "enter")
	if got := strings.TrimSpace(<-again.answer); got != "123" {
		t.Errorf("corrected answer %q", got)
	}

	// An empty answer counts, and a withdrawn question disappears.
	m.take(b)
	press(m, "ctrl+d")
	if got := <-b.answer; got != "" {
		t.Errorf("cancelled with %q", got)
	}
	m.take(a)
	m.take(b)
	m.take(withdrawn{a})
	if len(m.questions) != 1 || m.questions[0] != b {
		t.Error("the withdrawn question is still open")
	}
}

// TestConsent checks that no answer is given without a choice: neither by Enter nor by
// letters that begin no choice, or two.
func TestConsent(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string // "" if the question stays open
		says string
	}{
		{[]string{"enter"}, "", "choose first"},
		{[]string{"enter", "enter", "enter"}, "", "choose first"},
		{[]string{"no", "enter"}, "no", ""},
		{[]string{"n", "enter"}, "no", ""},
		{[]string{"N", "enter"}, "no", ""},
		{[]string{"j", "k", "enter"}, "", `begins with "jk"`},
		{[]string{"maybe", "enter"}, "", `begins with "maybe"`},
		{[]string{"maybe y", "enter"}, "", `begins with "maybe y"`},
		{[]string{"ye", "enter"}, "", `2 choices begin with "ye"`},
		{[]string{"yes", "enter"}, "yes", ""},
		{[]string{"yes", "x", "enter"}, "", "no choice"},
		{[]string{"down", "x", "enter"}, "", "no choice"},
		{[]string{"n", "up", "enter"}, "yesterday", ""},
		{[]string{"maybe", "down", "enter"}, "yes", ""},
		{[]string{"up", "enter"}, "show it first", ""},
	} {
		m := still(t, 80, 24)
		q := question1()
		q.Choices = []string{"yes", "yesterday", "no", "show it first"}
		m.take(q)
		press(m, c.keys...)
		got := ""
		select {
		case got = <-q.answer:
		default:
		}
		if got != c.want || c.says != "" && !strings.Contains(m.shown(), c.says) {
			t.Errorf("%q: answer %q, want %q; want %q on the screen:\n%s", c.keys, got, c.want, c.says, m.shown())
		}
	}
	// A choice with a blank needs a text in its place.
	m := still(t, 80, 24)
	q := question1()
	q.Choices = []string{"yes", "no", "no: …"}
	m.take(q)
	press(m, "no:", "enter")
	if len(q.answer) != 0 || !strings.Contains(m.shown(), "type the text in place of …") {
		t.Errorf("an answer without its text:\n%s", m.shown())
	}
	if press(m, "too long", "enter"); len(q.answer) != 1 || <-q.answer != "no: too long" {
		t.Error("the answer with its text is not given")
	}
	m = still(t, 80, 24)
	m.take(question2())
	if press(m, "enter"); len(m.questions) != 1 || !strings.Contains(m.shown(), "type an answer first") {
		t.Errorf("an empty answer:\n%s", m.shown())
	}
	// The key that answers one question does not answer the next.
	m = still(t, 80, 24)
	first, second := question1(), question1()
	m.take(first)
	m.take(second)
	if press(m, "no", "enter", "enter"); len(first.answer) != 1 || len(second.answer) != 0 {
		t.Error("the second question is answered too")
	}
}

// TestLongQuestion checks that every word of a question and its choices can be read before it is answered.
func TestLongQuestion(t *testing.T) {
	for _, words := range []int{30, 400} {
		m := still(t, 80, 24)
		q := question1()
		q.Text, q.Choices = "", []string{"yes", strings.Repeat("no, since ", 20) + "the end"}
		for i := range words {
			q.Text += fmt.Sprintf("word%03d ", i)
		}
		m.take(q)
		seen, screens := map[string]bool{}, ""
		for range 30 {
			l := m.layout().panel
			for _, x := range l.lines {
				screens += x.text + "\n"
			}
			if l.page < 1 || len(l.lines) >= 23 {
				t.Fatalf("%+v", l)
			}
			press(m, "pgdown")
		}
		for _, w := range strings.Fields(screens) {
			seen[w] = true
		}
		for i := range words {
			if w := fmt.Sprintf("word%03d", i); !seen[w] {
				t.Fatalf("%d words: %s cannot be read:\n%s", words, w, screens)
			}
		}
		if !seen["end"] || strings.Contains(screens, "more lines") != (words > 100) {
			t.Errorf("%d words:\n%s", words, screens)
		}
		if press(m, "pgup", "pgup"); words > 100 && m.above == m.layout().panel.hidden {
			t.Error("pgup does not go back")
		}
	}
}

func TestCtrlC(t *testing.T) {
	m := still(t, 80, 24)
	var why error
	m.cancel = func(err error) { why = err }
	if cmd := press(m, "ctrl+c"); cmd != nil || m.state != canceling || why == nil {
		t.Errorf("first: state %d, %v", m.state, why)
	}
	if cmd := press(m, "q", "r"); cmd != nil {
		t.Error("q and r have an effect while a run is running")
	}
	if cmd := press(m, "ctrl+c"); cmd == nil {
		t.Error("second: the display does not end")
	}
	if _, err := m.outcome(); !errors.Is(err, display.ErrLeft) {
		t.Errorf("outcome %v", err)
	}

	m = still(t, 80, 24)
	m.Update(leave{})
	if _, cmd := m.Update(ended{err: why}); cmd == nil || m.state != broke {
		t.Error("a signal ends the display with the run")
	}
	if _, cmd := m.Update(leave{}); cmd == nil {
		t.Error("a signal does not end the display after the run")
	}
	if cmd := press(m, "q"); cmd == nil {
		t.Error("q does not leave")
	}
}

// TestHostile checks that no text from outside controls the terminal.
func TestHostile(t *testing.T) {
	evil := "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x00\u202eabc\u2066\x7f\x1bPq"
	for _, size := range []struct{ width, height int }{{100, 30}, {40, 20}} {
		m := still(t, size.width, size.height)
		m.cfg.Pipeline = stone.Seq("name"+evil, say("step"+evil))
		m.start()
		m.Update(tea.WindowSizeMsg{Width: size.width, Height: size.height})
		call := &piece{path: evil, turn: 1, from: evil, kind: event.Arguments, tool: evil}
		m.feed.items = []any{
			started{evil}, entered{evil}, asked{evil, evil, 1}, call,
			&piece{path: evil, turn: 1, from: evil, kind: event.Arguments, text: []byte(evil)},
			&piece{path: evil, turn: 1, from: evil, kind: event.Text, text: []byte(evil + "\n" + evil)},
			voided{evil, 1, evil, event.Retracted{Source: evil, Attempt: 1, Reason: evil}},
			called{evil, 1, 1, evil, evil, evil, false, 0},
			failed{evil, evil, evil, 1}, failed{evil, evil, evil, 0}, answered{evil, evil},
		}
		m.Update(frame{})
		q := question1()
		q.Name, q.Text, q.Problem, q.Choices = evil, evil+"\n"+evil, evil, []string{evil, "b"}
		m.take(q)
		screens := m.shown()
		q = question2()
		q.Problem = evil
		m.take(q)
		m.answered = evil
		press(m, "tab")
		screens += m.shown()
		m.cfg.Show = func(stone.Result) string { return evil }
		m.Update(ended{stone.Result{RunID: evil}, errors.New(evil)})
		screens += m.shown()
		for _, r := range screens {
			if r != '\n' && unicode.IsControl(r) || r == '\u202e' || r == '\u2066' {
				t.Fatalf("%q is on the screen:\n%q", r, screens)
			}
		}
		if n := strings.Count(screens, "owned"); n < 10 {
			t.Errorf("of the texts %d are shown", n)
		}
	}
}

// TestEverySize checks that the screen is never larger than the terminal, and that
// the line of an answer is always on it.
func TestEverySize(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		m := still(outer, 80, 24)
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				for _, item := range conversation() {
					m.take(item)
				}
			case 1:
				q := question1()
				q.Text = strings.Repeat("long 長い ", rapid.IntRange(0, 40).Draw(t, "question"))
				q.Choices = q.Choices[:rapid.SampledFrom([]int{0, 3}).Draw(t, "choices")]
				m.take(q)
			case 2:
				press(m, rapid.SampledFrom([]string{"pgup", "pgdown", "home", "end", "up", "tab", "漢字"}).Draw(t, "key"))
			case 3:
				m.take(failed{"kind", "path", strings.Repeat("reason ", 30), 0})
			case 4:
				if m.state == running {
					press(m, "ctrl+c")
				}
			}
			width, height := rapid.IntRange(1, 120).Draw(t, "width"), rapid.IntRange(1, 40).Draw(t, "height")
			m.Update(tea.WindowSizeMsg{Width: width, Height: height})
			v := m.View()
			lines := strings.Split(sgr.ReplaceAllString(v.Content, ""), "\n")
			if len(lines) > height {
				t.Fatalf("%d lines on %dx%d", len(lines), width, height)
			}
			for _, l := range lines {
				if text.Width(l) > max(width, 2) {
					t.Fatalf("%q on %dx%d", l, width, height)
				}
			}
			if len(m.questions) > 0 && (v.Cursor == nil || v.Cursor.Y >= height) {
				t.Fatalf("no cursor on %dx%d", width, height)
			}
		}
	})
}
