package openai

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/kind"
)

// Retracted is the failure kind of a run that was cancelled because its answer was rejected after a client had received a part of
// it.
const Retracted kind.Kind = "retracted"

// Live is the text of an answer while the model writes it, before a gate has accepted the answer. A Live watches one run and
// keeps the text of the first answer that the run streams. If this answer is rejected after said has returned a part of its text,
// Live cancels the run, because text that a client has received cannot be retracted, and the client would pay for another answer
// that it cannot receive.
type Live struct {
	Void context.CancelCauseFunc // cancels the run

	mu    sync.Mutex
	voice voice
	text  strings.Builder
	taken bool          // said has returned some of the text
	over  bool          // no more text will follow
	news  chan struct{} // closed when anything changes; nil while nobody is waiting
}

// A voice identifies an answer that is being streamed.
type voice struct {
	path, source string
	attempt      int
}

// Wants implements event.Watcher.
func (l *Live) Wants(_ context.Context, level slog.Level) bool {
	return level == event.LevelDelta || level == slog.LevelInfo
}

// Watch implements event.Watcher.
func (l *Live) Watch(_ context.Context, e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch d := e.Data.(type) {
	case event.RunEnded:
		l.end()
	case event.Delta:
		v := voice{e.Path, d.Source, d.Attempt}
		if l.over || d.Kind != event.Text || d.Text == "" || l.text.Len() > 0 && v != l.voice {
			return
		}
		l.voice = v
		l.text.WriteString(d.Text)
		l.wake()
	case event.Retracted:
		if l.over || l.text.Len() == 0 || !d.Covers(e.Path, l.voice.path, l.voice.source, l.voice.attempt) {
			return
		}
		if !l.taken {
			l.text.Reset()
			return
		}
		l.Void(stone.Fail(Retracted, "the answer was rejected after it was streamed (%s): ask without a stream for one that is accepted", d.Reason))
		l.end()
	}
}

// End records that the run has ended.
func (l *Live) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

func (l *Live) end() {
	l.over = true
	l.wake()
}

func (l *Live) wake() {
	if l.news != nil {
		close(l.news)
		l.news = nil
	}
}

// said returns the text so far and the channel news, which is closed when more text arrives or the run ends. If no more text will
// follow, news is nil.
func (l *Live) said() (text string, news <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = l.taken || l.text.Len() > 0
	if l.over {
		return l.text.String(), nil
	}
	if l.news == nil {
		l.news = make(chan struct{})
	}
	return l.text.String(), l.news
}
