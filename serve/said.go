package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/serve/api"
)

const (
	mostSaid  = 8       // maximum number of concurrent answers sent
	saidBytes = 2 << 10 // maximum bytes of each answer; only its end is kept
	saidEvery = 200 * time.Millisecond
)

// A speech holds the answers that models are currently writing in one run of this process, for people who watch the run. It is
// not a record: an answer is removed once it is complete or retracted.
type speech struct {
	mu      sync.Mutex
	answers []answer
	waking  bool          // news will be closed soon
	news    chan struct{} // closed after something has changed
}

// An answer is the text of an answer that a model is writing.
type answer struct {
	api.Piece
	attempt int
}

func newSpeech() *speech { return &speech{news: make(chan struct{})} }

// Wants implements event.Watcher.
func (s *speech) Wants(_ context.Context, level slog.Level) bool {
	return level == event.LevelDelta || level == slog.LevelInfo
}

// Watch implements event.Watcher.
func (s *speech) Watch(_ context.Context, e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch d := e.Data.(type) {
	case event.RunEnded:
		s.drop(func(answer) bool { return true })
	case event.Retracted:
		s.drop(func(a answer) bool { return d.Covers(e.Path, a.Path, a.Source, a.attempt) })
	case event.Delta:
		switch {
		case d.End:
			s.drop(func(a answer) bool { return a.Path == e.Path && a.Source == d.Source && a.attempt == d.Attempt })
		case d.Kind == event.Text && d.Text != "":
			s.say(answer{api.Piece{Type: "said", Path: e.Path, Source: d.Source, Text: d.Text}, d.Attempt})
		}
	}
}

func (s *speech) drop(gone func(answer) bool) {
	was := len(s.answers)
	if s.answers = slices.DeleteFunc(s.answers, gone); len(s.answers) < was {
		s.changed()
	}
}

// say adds a piece of an answer. While mostSaid answers are being written, other answers are ignored.
func (s *speech) say(piece answer) {
	i := slices.IndexFunc(s.answers, func(a answer) bool {
		return a.Path == piece.Path && a.Source == piece.Source && a.attempt == piece.attempt
	})
	if i < 0 && len(s.answers) == mostSaid {
		return
	} else if i < 0 {
		i, s.answers = len(s.answers), append(s.answers, answer{})
	} else {
		piece.Text = s.answers[i].Text + piece.Text
	}
	piece.Text = ending(piece.Text)
	s.answers[i] = piece
	s.changed()
}

// ending returns text or, if it is too long, only its end.
func ending(text string) string {
	const mark = "…"
	if len(text) <= saidBytes {
		return text
	}
	at := len(text) - saidBytes + len(mark)
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return mark + text[at:]
}

// changed notifies the listeners after a short delay, so that several pieces cause one notification. The caller holds s.mu.
func (s *speech) changed() {
	if s.waking {
		return
	}
	s.waking = true
	time.AfterFunc(saidEvery, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.news)
		s.waking, s.news = false, make(chan struct{})
	})
}

// now returns the answers written so far and the channel news, which is closed when they change.
func (s *speech) now() (said []api.Piece, news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	said = make([]api.Piece, len(s.answers))
	for i, a := range s.answers {
		said[i] = a.Piece
	}
	return said, s.news
}

// A listener sends the answers that are being written in a run to one client.
type listener struct {
	s    *Server
	run  string // key of the run; empty if the client does not want answers
	told []api.Piece
}

// tell sends the answers if they have changed. It returns the channel news, which is closed after the next change. News is nil if
// the client does not want answers or this process does not execute the run.
func (l *listener) tell(out *eventStream) (news <-chan struct{}) {
	if l.run == "" {
		return nil
	}
	said := []api.Piece{}
	if speech := watcherOf[*speech](l.s, l.run); speech != nil {
		said, news = speech.now()
	}
	if slices.Equal(said, l.told) {
		return news
	}
	text, err := json.Marshal(api.Event{Said: said})
	if err != nil { // cannot happen: the event contains only text
		panic(err)
	}
	l.told = said
	out.write(append(append([]byte("event: said\ndata: "), text...), "\n\n"...))
	out.send()
	return news
}
