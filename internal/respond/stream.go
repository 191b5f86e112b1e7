package respond

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/edn"
)

// A Stream is the watcher of one run. It writes the pieces of answers as they arrive, each as a line of JSON or EDN.
type Stream struct {
	W   io.Writer // each line is written with a single call
	EDN bool

	mu     sync.Mutex
	err    error         // error of the first line that could not be written
	voices []voice       // voices whose text has not been retracted
	values event.Watcher // writes partial values; nil if they are not wanted
	over   bool          // the run has ended; output of abandoned capabilities is dropped
}

// A voice is a model or capability that has produced output at a path.
type voice struct{ path, source string }

// WithValues makes the stream also write the partial values of answers.
func (s *Stream) WithValues() {
	s.values = event.Partials("", func(p event.Partial[json.RawMessage]) {
		if p.Retracted == "" { // otherwise a line about the retraction is written anyway
			s.line("partial", voice{p.Path, p.Source}, "value", p.Value)
		}
	})
}

// Wants implements event.Watcher.
func (s *Stream) Wants(_ context.Context, level slog.Level) bool {
	return level == event.LevelDelta || level == slog.LevelInfo
}

// Watch writes a line for a piece of an answer, for the retraction of a voice's pieces so far, or for progress that a server
// reports.
func (s *Stream) Watch(ctx context.Context, e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	switch d := e.Data.(type) {
	case event.RunEnded:
		s.over = true
	case event.Delta:
		if d.Kind == event.Text && !d.End {
			v := voice{e.Path, d.Source}
			s.line("delta", v, "text", d.Text)
			if !slices.Contains(s.voices, v) {
				s.voices = append(s.voices, v)
			}
		}
	case event.Retracted:
		for _, v := range s.void(e.Path, d) {
			s.line("retracted", v, "reason", d.Reason)
		}
	case event.Progress:
		if d.Message != "" {
			s.line("progress", voice{path: e.Path}, "message", d.Message)
		}
	}
	if s.values != nil {
		s.values.Watch(ctx, e)
	}
}

// void removes and returns the voices whose text is retracted.
func (s *Stream) void(path string, d event.Retracted) (gone []voice) {
	s.voices = slices.DeleteFunc(s.voices, func(v voice) bool {
		void := (d.Source == "" || d.Source == v.source) && event.Retracted{}.Covers(path, v.path, "", 0)
		if void {
			gone = append(gone, v)
		}
		return void
	})
	return gone
}

// line writes one line. The voice's source may be empty. The value is a string or JSON.
func (s *Stream) line(kind string, from voice, key string, value any) {
	if s.EDN {
		source, shown := "", edn.Value{}
		if from.source != "" {
			source = ", :source " + edn.String(from.source).String()
		}
		switch value := value.(type) {
		case string:
			shown = edn.String(value)
		case json.RawMessage:
			var err error
			if shown, err = edn.FromJSON(value, edn.Limits{}); err != nil {
				return // for example, the value is nested too deeply; the response reports it
			}
		}
		_ = s.write(fmt.Appendf(nil, "{:type :%s, :path %s%s, :%s %s}", kind, edn.String(from.path), source, key, shown), nil) // Respond will return the error
		return
	}
	all := map[string]any{"type": kind, "path": from.path, key: value}
	if from.source != "" {
		all["source"] = from.source
	}
	_ = s.write(json.Marshal(all)) // Respond will return the error
}

// Close returns the first error that occurred.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// write writes a line, unless err is set. It returns the first error that has occurred in the stream.
func (s *Stream) write(line []byte, err error) error {
	if err == nil && s.err == nil {
		if n := len(line); n == 0 || line[n-1] != '\n' {
			line = append(line, '\n')
		}
		_, err = s.W.Write(line)
	}
	if s.err == nil {
		s.err = err
	}
	return s.err
}

// Respond writes the response as the last line.
func (s *Stream) Respond(resp call.Response) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.EDN {
		return s.write(resp.EDN())
	}
	return s.write(resp.MarshalJSON())
}
