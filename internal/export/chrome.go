package export

import (
	"bufio"
	"encoding/json"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/journal"
)

// chromeEvent is an event in the Trace Event Format, with times in microseconds.
type chromeEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	Time  int64          `json:"ts"`
	Took  int64          `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	Track int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// Chrome writes the steps of a run as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing can show. Concurrent steps are
// on different tracks, and inner steps are below their outer step. The trace does not include contents, nor steps that did not
// start because their result was reused.
func Chrome(w io.Writer, run journal.RunInfo, steps iter.Seq2[journal.Step, error]) error {
	out := bufio.NewWriter(w)
	in := json.NewEncoder(out)
	if _, err := out.WriteString(`{"displayTimeUnit":"ms","traceEvents":[`); err != nil {
		return err
	}
	if err := in.Encode(chromeEvent{Name: "process_name", Phase: "M", PID: 1, Args: map[string]any{"name": "run " + run.ID + " of " + run.Pipeline}}); err != nil {
		return err
	}
	var tracks tracks
	for s, err := range sorted(steps) {
		if err != nil {
			return err
		}
		end := s.Ended
		if end.IsZero() { // the step is still running, or was lost
			end = run.Ended
		}
		if end.Before(s.Started) {
			end = s.Started
		}
		_, _ = out.WriteString(",") // if the writer fails, Encode returns the error
		e := chromeEvent{Name: address.Last(s.Path), Cat: s.Kind, Phase: "X", PID: 1, Track: tracks.place(s.Path, s.Started, end),
			Time: s.Started.UnixMicro(), Took: end.Sub(s.Started).Microseconds(), Args: arguments(s)}
		if err := in.Encode(e); err != nil {
			return err
		}
	}
	if _, err := out.WriteString("]}\n"); err != nil {
		return err
	}
	return out.Flush()
}

// arguments returns the details of a step that the viewer shows.
func arguments(s journal.Step) map[string]any {
	args := map[string]any{"path": s.Path}
	for name, value := range map[string]string{"type": s.Type, "failure": s.Failure, "reason": s.Reason} {
		if value != "" {
			args[name] = value
		}
	}
	if s.Attempts > 1 {
		args["attempts"] = s.Attempts
	}
	if u := s.Usage; u.InputTokens+u.OutputTokens > 0 || u.USD > 0 {
		args["input-tokens"], args["output-tokens"], args["usd"] = u.InputTokens, u.OutputTokens, u.USD
	}
	return args
}

// tracks assigns steps to tracks, so that two steps on the same track either follow each other or are nested.
type tracks [][]span

// span is a step on a track, which may have ended.
type span struct {
	path string
	end  time.Time
}

// place returns the track for a step. It must be called in the order in which the steps started.
func (t *tracks) place(path string, start, end time.Time) int {
	for i, open := range *t {
		for len(open) > 0 && !open[len(open)-1].end.After(start) {
			open = open[:len(open)-1]
		}
		(*t)[i] = open
		if len(open) == 0 || strings.HasPrefix(path, open[len(open)-1].path+"/") && !end.After(open[len(open)-1].end) {
			(*t)[i] = append(open, span{path, end})
			return i + 1
		}
	}
	*t = append(*t, []span{{path, end}})
	return len(*t)
}
