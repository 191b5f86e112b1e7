package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/edn"
)

// streamHelp is the help of the flag --stream.
const streamHelp = "print pieces of answers as they arrive, one a line; a line \"retracted\" voids the earlier pieces of its path and source"

// A stream writes the pieces of the answers in a run as they arrive, each in one line of
// JSON or EDN. It is the watcher of one run.
type stream struct {
	edn bool

	mu     sync.Mutex
	w      io.Writer
	err    error   // of the first line that could not be written
	voices []voice // whose text is not retracted
	over   bool    // the run has ended: what an abandoned capability still says is dropped
}

// A voice is a model or capability that has said something at a path.
type voice struct{ path, source string }

// Wants implements event.Watcher.
func (s *stream) Wants(_ context.Context, level slog.Level) bool {
	return level == event.LevelDelta || level == slog.LevelInfo
}

// Watch writes a piece of an answer, a notice that the pieces of a voice so far are void,
// or the progress that a server reports.
func (s *stream) Watch(_ context.Context, e event.Event) {
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

// line writes one line. The source may be "".
func (s *stream) line(kind string, from voice, key, text string) {
	fields := [][2]string{{"path", from.path}, {"source", from.source}, {key, text}}
	fields = slices.DeleteFunc(fields, func(f [2]string) bool { return f[0] == "source" && f[1] == "" })
	if s.edn {
		var line strings.Builder
		fmt.Fprintf(&line, "{:type :%s", kind)
		for _, f := range fields {
			fmt.Fprintf(&line, ", :%s %s", f[0], edn.String(f[1]))
		}
		_ = s.write([]byte(line.String()+"}"), nil) // respond returns the error
		return
	}
	all := map[string]string{"type": kind}
	for _, f := range fields {
		all[f[0]] = f[1]
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
