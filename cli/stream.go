package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/llm/structured"
)

// streamHelp is the help of the flag --stream.
const streamHelp = "print pieces of answers as they arrive, one a line; a line \"retracted\" voids the earlier pieces of its path and source"

// partialHelp is the help of the flag --partial.
const partialHelp = "with --stream, also print what has arrived of answers in JSON, closed to a value, in lines \"partial\""

var errPartial = errors.New("--partial needs --stream, whose lines it adds to")

// A stream writes the pieces of the answers in a run as they arrive, each in one line of
// JSON or EDN. It is the watcher of one run.
type stream struct {
	edn bool

	mu     sync.Mutex
	w      io.Writer
	err    error         // of the first line that could not be written
	voices []voice       // whose text is not retracted
	values event.Watcher // writes partial values; nil for none
	over   bool          // the run has ended: what an abandoned capability still says is dropped
}

// A voice is a model or capability that has said something at a path.
type voice struct{ path, source string }

// withValues makes the stream print the partial values of answers, too.
func (s *stream) withValues() {
	s.values = structured.Watch("", func(p structured.Partial[json.RawMessage]) {
		if p.Retracted == "" { // else a line is written anyway
			s.line("partial", voice{p.Path, p.Source}, "value", p.Value)
		}
	})
}

// Wants implements event.Watcher.
func (s *stream) Wants(_ context.Context, level slog.Level) bool {
	return level == event.LevelDelta || level == slog.LevelInfo
}

// Watch writes a piece of an answer, a notice that the pieces of a voice so far are void,
// or the progress that a server reports.
func (s *stream) Watch(ctx context.Context, e event.Event) {
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

// void returns the voices whose text is retracted.
func (s *stream) void(path string, d event.Retracted) (gone []voice) {
	s.voices = slices.DeleteFunc(s.voices, func(v voice) bool {
		void := (d.Source == "" || d.Source == v.source) && event.Retracted{}.Covers(path, v.path, "", 0)
		if void {
			gone = append(gone, v)
		}
		return void
	})
	return gone
}

// line writes one line. The source may be "". The value is a string or JSON.
func (s *stream) line(kind string, from voice, key string, value any) {
	if s.edn {
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
				return // such as too deep, of which the response may tell
			}
		}
		_ = s.write(fmt.Appendf(nil, "{:type :%s, :path %s%s, :%s %s}", kind, edn.String(from.path), source, key, shown), nil) // respond returns the error
		return
	}
	all := map[string]any{"type": kind, "path": from.path, key: value}
	if from.source != "" {
		all["source"] = from.source
	}
	_ = s.write(json.Marshal(all)) // as above
}

// close returns the first error of all.
func (s *stream) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// write writes a line. It returns the first error of all.
func (s *stream) write(line []byte, err error) error {
	if err == nil && s.err == nil {
		if n := len(line); n == 0 || line[n-1] != '\n' {
			line = append(line, '\n')
		}
		_, err = s.w.Write(line)
	}
	if s.err == nil {
		s.err = err
	}
	return s.err
}
