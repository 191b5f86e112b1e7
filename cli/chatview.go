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

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/text"
)

// A chatView shows a turn at a terminal while it runs: the reply as it arrives, and a line for each tool call. It is the turn's
// watcher.
type chatView struct {
	out     io.Writer
	replies []string // names of the ashlars whose text is shown
	columns int

	mu     sync.Mutex
	from   voiced
	said   strings.Builder // the text of from that was shown and not retracted
	void   string          // reason why the last text was retracted; shown before the new text
	midway bool            // the last line shown is incomplete
	paused strings.Builder // output held back while a question is open
	asking int             // number of open questions
}

// voiced identifies one answer among the answers that are being streamed.
type voiced struct {
	path, source string
	attempt      int
}

// Wants implements event.Watcher.
func (v *chatView) Wants(context.Context, slog.Level) bool { return true }

// Watch implements event.Watcher.
func (v *chatView) Watch(_ context.Context, e event.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch d := e.Data.(type) {
	case event.Delta:
		if d.Kind == event.Text && d.Text != "" && slices.Contains(v.replies, e.Name) {
			v.hear(voiced{e.Path, d.Source, d.Attempt}, d.Text)
		}
	case event.Retracted:
		if v.said.Len() > 0 && d.Covers(e.Path, v.from.path, v.from.source, v.from.attempt) {
			v.void = d.Reason
			v.said.Reset()
		}
	case event.ToolStarted:
		input, _ := json.Marshal(d.Input) // the line can be shown without the input
		v.line(fmt.Sprintf("· %s %s", d.Tool, input))
	case event.ToolDone:
		if !d.OK {
			v.line(fmt.Sprintf("· %s failed: %s", d.Tool, d.Text))
		}
	}
}

// hear shows a piece of an answer, unless the answer consists of data.
func (v *chatView) hear(from voiced, piece string) {
	if v.void != "" {
		v.line("[taken back: " + v.void + "]")
		v.void = ""
	}
	if from != v.from {
		v.from = from
		v.said.Reset()
		v.fresh()
	}
	if v.said.Len() == 0 {
		piece = strings.TrimLeft(piece, " \n")
	}
	v.said.WriteString(piece)
	if s := v.said.String(); s != "" && s[0] != '{' && s[0] != '[' {
		v.write(piece)
	}
}

// line writes s as a separate line, cut to the width of the terminal.
func (v *chatView) line(s string) {
	v.fresh()
	v.write(text.Cut(text.Line(s), v.columns) + "\n")
}

// fresh starts a new line unless the output is already at the start of a line.
func (v *chatView) fresh() {
	if v.midway {
		v.write("\n")
	}
}

func (v *chatView) write(s string) {
	if s == "" {
		return
	}
	v.midway = !strings.HasSuffix(s, "\n")
	if v.asking > 0 {
		v.paused.WriteString(s)
		return
	}
	_, _ = io.WriteString(v.out, s) // if this fails, writing the result will fail, too
}

// Pause implements pauser.
func (v *chatView) Pause() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fresh()
	v.asking++
}

// Resume implements pauser.
func (v *chatView) Resume() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.asking--; v.asking == 0 {
		s := v.paused.String()
		v.paused.Reset()
		v.write(s)
	}
}

// end ends the view of a turn and reports whether the reply has been shown completely.
func (v *chatView) end(result stone.Result) (shown bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fresh()
	s := strings.TrimSpace(v.said.String())
	shown = s != "" && s[0] != '{' && s[0] != '[' && result.Node != nil && s == strings.TrimSpace(result.Node.Text())
	v.said.Reset()
	v.from, v.void = voiced{}, ""
	return shown
}
