package tui

import (
	"context"
	"fmt"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/display"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/kind"
)

// Messages that the display handles.
type (
	frame struct{} // the feed has items, or the clock has advanced
	leave struct{} // the process is about to end
	ended struct { // the run is over
		result stone.Result
		err    error
	}
)

// state is the state of the run.
type state uint8

const (
	refused   state = iota // the pipeline is invalid
	ready                  // the run starts when the person presses a key
	running                // the run has started
	canceling              // the run is being canceled
	done                   // the run has ended with a result
	broke                  // the run has ended with a failure
)

// model is the state of the display. Only the goroutine of its program uses it.
type model struct {
	cfg  Config
	ctx  context.Context
	feed *feed

	width, height int
	transcript    transcript
	questions     []*question // open questions; the first is shown
	input         textinput.Model
	choice        int    // index of the first question's selected choice; -1 if none is selected
	refusal       string // reason why the last key did not answer the question
	above         int    // lines of the question above the visible ones
	answered      string // latest answer; offered again for editing if it is refused
	answeredAt    string // path of the question that it answers

	state         state
	tree          *progress.Tree
	cancel        context.CancelCauseFunc
	began         time.Time
	spent         time.Duration
	used          budget.Usage
	failure       string // failure that was last shown
	given         dag.DAG
	leaving, quit bool     // leaving: leave when the run has ended; quit: leave at once
	listed        []string // list of keys or runs, shown instead of the tree and the transcript
	result        stone.Result
	err           error
}

func newModel(ctx context.Context, cfg Config, f *feed) *model {
	if cfg.Run == nil {
		cfg.Run = stone.Run
	}
	m := &model{cfg: cfg, ctx: ctx, feed: f, input: textinput.New(), width: 80, height: 24, choice: -1}
	m.input.Prompt = "> "
	m.input.SetVirtualCursor(false)
	m.input.SetStyles(textinput.Styles{})
	m.input.KeyMap.Paste.SetEnabled(false) // pasting would start a program; terminals paste by themselves
	m.input.Focus()
	m.transcript.width = 80
	return m
}

// Init starts the first run, or waits until the person starts it.
func (m *model) Init() tea.Cmd {
	if m.cfg.Needs != "" {
		m.tree, m.state = progress.NewTree(m.cfg.Pipeline), ready
		m.transcript.begin()
		m.open(&question{Question: ask.Question{Name: "input", Text: m.cfg.Needs}, read: func(typed string) (err error) {
			m.given, err = m.cfg.Read(typed)
			return err
		}})
		return nil
	}
	if !m.cfg.Wait {
		return m.start()
	}
	if m.prepare() {
		m.state = ready
	}
	return nil
}

// start starts a run of the pipeline.
func (m *model) start() tea.Cmd {
	if !m.prepare() {
		return nil
	}
	return m.launch()
}

// config returns the configuration of a run.
func (m *model) config() stone.Config {
	return stone.Config{Watch: watcher{m.feed, m.tree}, Frontend: m.feed, Now: m.cfg.Now, Grant: m.cfg.Grant, Input: m.given}
}

// prepare shows the pipeline before a run. It reports whether the pipeline can be run.
func (m *model) prepare() bool {
	m.tree = progress.NewTree(m.cfg.Pipeline)
	m.transcript.begin()
	m.spent, m.used, m.failure = 0, budget.Usage{}, ""
	m.result, m.err = stone.Result{}, nil
	findings := stone.Validate(m.cfg.Pipeline, m.config().Given())
	if m.cfg.Check != nil {
		findings = m.cfg.Check(m.config())
	}
	for _, f := range findings.Warnings() {
		m.transcript.note(yellow, "", f.String())
	}
	if m.err = findings.Err(); m.err != nil {
		m.state = refused
		for _, f := range findings.Errors() {
			m.transcript.note(red, "", f.String())
		}
	}
	return m.err == nil
}

// launch runs the prepared pipeline.
func (m *model) launch() tea.Cmd {
	m.state, m.began = running, m.cfg.Now()
	m.feed.running.Store(true)
	ctx, cancel := context.WithCancelCause(m.ctx)
	m.cancel = cancel
	cfg := m.config()
	return func() tea.Msg {
		result, err := m.cfg.Run(ctx, m.cfg.Pipeline, cfg)
		return ended{result, err}
	}
}

func (m *model) busy() bool { return m.state == running || m.state == canceling }

// Update handles a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.input.SetWidth(max(1, m.width-len(m.input.Prompt)-1))
		m.transcript.resize(m.layout().transcriptWidth)
	case frame:
		m.fetch()
	case ended:
		m.fetch()
		cmd = m.end(msg)
	case leave:
		m.leaving = true
		if m.state == running {
			m.interrupt("a signal")
		} else if !m.busy() {
			cmd = tea.Quit
		}
	case tea.MouseWheelMsg:
		if msg.Button == tea.MouseWheelUp {
			m.scroll(-3)
		} else if msg.Button == tea.MouseWheelDown {
			m.scroll(3)
		}
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	case tea.PasteMsg:
		cmd = m.typed(msg)
	}
	return m, cmd
}

// fetch takes the items from the feed.
func (m *model) fetch() {
	for _, item := range m.feed.take() {
		m.take(item)
	}
}

func (m *model) take(item any) {
	t := &m.transcript
	switch item := item.(type) {
	case started:
		m.result.RunID = item.id
	case entered:
		t.at(item.path, 0)
	case left:
		delete(t.speakers, item.path)
	case asked:
		t.at(item.path, item.turn).model = item.model
	case used:
		m.used = m.used.Add(budget.Usage(item))
	case *piece:
		t.take(item)
	case voided:
		t.void(item)
	case whole:
		t.whole(item)
	case called:
		t.result(item)
	case reported:
		t.report(item)
	case verdict:
		t.verdict(item)
	case failed:
		if item.attempt > 0 {
			t.failure(item.path, yellow, fmt.Sprintf("↻ attempt %d at %s failed: %s: %s", item.attempt, address.Readable(item.path), item.kind, item.reason))
		} else {
			m.failure = (&stone.Failure{Kind: kind.Kind(item.kind), Path: item.path, Reason: item.reason}).Error()
			t.failure(item.path, red, "✗ "+m.failure)
		}
	case *question:
		m.open(item)
	case withdrawn:
		m.close(item.question)
	case answered:
		if item.response == "" {
			item.response = "(no answer)"
		}
		t.add(&block{text: []byte("> " + item.name + ": " + item.response), style: plain})
	case missed:
		t.note(yellow, "", fmt.Sprintf("… %d events came faster than they could be shown", item.items))
	}
}

// end shows the outcome of the run.
func (m *model) end(e ended) tea.Cmd {
	m.cancel(nil)
	m.feed.running.Store(false)
	m.result, m.err, m.spent, m.questions = e.result, e.err, m.cfg.Now().Sub(m.began), nil
	if m.state = done; e.err != nil {
		m.state = broke
		if why := e.err.Error(); why != m.failure {
			m.transcript.note(red, "", "✗ "+why)
		}
	}
	if m.state == done {
		for i, lane := range e.result.Lost {
			if i == maxLost {
				m.transcript.note(yellow, "", fmt.Sprintf("… and %d more lanes were lost", len(e.result.Lost)-i))
				break
			}
			n := lane.Failure
			m.transcript.failure(n.Meta()["path"], yellow, fmt.Sprintf("lost: %v at %s: %v", n.Get("kind", ""), address.Readable(n.Meta()["path"]), n.Get("reason", "")))
		}
	}
	if shown := m.cfg.Show(e.result); shown != "" {
		head := "result"
		if e.result.Node == nil {
			head = ""
		}
		m.transcript.note(plain, head, shown[:min(len(shown), maxResult)])
		if len(shown) > maxResult {
			m.transcript.note(dim, "", "… the rest of the result is not shown")
		}
	}
	if m.leaving {
		return tea.Quit
	}
	return nil
}

// interrupt cancels the run when it is called for the first time. The second call ends the display.
func (m *model) interrupt(by string) tea.Cmd {
	if m.state == running {
		m.state = canceling
		m.cancel(stone.Fail(kind.Canceled, "the run was ended by %s", by))
		return nil
	}
	m.quit = m.busy()
	return tea.Quit
}

// maxLost is the maximum number of failed lanes that are listed.
const maxLost = 20

// maxResult is how much of a result is shown, in bytes.
const maxResult = maxText / 4

// outcome returns the values that Run returns.
func (m *model) outcome() (stone.Result, error) {
	if m.quit {
		return m.result, display.ErrLeft
	}
	return m.result, m.err
}
