package trace

import (
	"bufio"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/stonelayer/stone/event"
)

// reorderWindow is how many lines RunLifecycle holds back to sort events by timestamp: concurrent lanes write slightly out of
// order.
const reorderWindow = 4096

// A Command prints the results of the three inspections of a trace file. Its methods
// return an error only if the file cannot be opened or read to its end, or the answer
// cannot be written. Unusable lines are reported on Err, one line each, and skipped.
type Command struct {
	Out io.Writer // of the answer; nil is standard output
	Err io.Writer // of reports on lines; nil is standard error
}

// RunTally prints the number of events, then the number of each type, the most
// frequent first.
func (c Command) RunTally(path string) error {
	return c.run(path, func(out *bufio.Writer, f io.Reader, report func(error)) {
		counts, total := tally(f, report)
		if total == 1 {
			fmt.Fprintln(out, "1 event")
		} else {
			fmt.Fprintf(out, "%d events\n", total)
		}
		for _, n := range counts {
			fmt.Fprintf(out, "%8d  %s\n", n.N, orDash(n.Type))
		}
	})
}

// RunLifecycle prints the events of [Lifecycle] in chronological order, each as [FormatLifecycleLine] formats it. An event that
// is in the file after later ones is moved up past at most 4,096 events. An event without a timestamp stays after the event it
// follows. The first lines are printed long before a long file has been read.
func (c Command) RunLifecycle(path string) error {
	return c.run(path, printLifecycle)
}

func printLifecycle(out *bufio.Writer, f io.Reader, report func(error)) {
	var window lineHeap
	var last time.Time
	n, printed := 0, 0
	// The window contains all events, and they are filtered when they leave it: an event
	// of interest waits for 4,096 others, not for 4,096 of interest.
	print := func() {
		if line := heap.Pop(&window).(timedLine); line.told {
			fmt.Fprintln(out, line.text)
			printed++
		}
	}
	for e := range valid(event.Read(f), report) {
		if !e.Time.IsZero() {
			last = e.Time
		}
		n++
		line := timedLine{at: last, n: n, told: told(e)}
		if line.told {
			line.text = FormatLifecycleLine(e)
		}
		heap.Push(&window, line)
		if len(window) > reorderWindow {
			print()
		}
	}
	for len(window) > 0 {
		print()
	}
	if printed == 0 {
		fmt.Fprintln(out, "No lifecycle events found.")
	}
}

// PayloadOptions say which request RunPayload prints.
type PayloadOptions struct {
	Ashlar string // name of the ashlar; "" is any
	Turn   *int   // turn of the model; nil is any
	Last   bool   // the most recent one that matches, not the first
}

// RunPayload prints the request to a model in one call: ashlar, turn, model, tools, the
// beginning of the system prompt, and a line for each message. If no request matches, it
// prints that, and how to record messages.
func (c Command) RunPayload(path string, opts PayloadOptions) error {
	return c.run(path, func(out *bufio.Writer, f io.Reader, report func(error)) {
		var found event.Event
		var request event.ModelRequest
		others := 0
		for e := range valid(event.Read(f), report) {
			r, ok := e.Data.(event.ModelRequest)
			if !ok || r.Messages == nil {
				continue
			}
			if !((opts.Ashlar == "" || e.Name == opts.Ashlar) && (opts.Turn == nil || r.Turn == *opts.Turn)) {
				others++
				continue
			}
			found, request = e, r
			if !opts.Last {
				break
			}
		}
		if found.Data != nil {
			printPayload(out, found, request)
			return
		}
		fmt.Fprintf(out, "No api-call with its messages found%s", opts)
		if others > 0 {
			fmt.Fprintf(out, " (%d found that do not match)", others)
		}
		fmt.Fprintln(out, ".\nMessages are recorded at level debug only: run the pipeline again with STONE_LOG_LEVEL=debug.")
	})
}

// run opens the file for inspect and passes it a function that reports errors of reading.
// It returns the error that ended the reading or the writing.
func (c Command) run(path string, inspect func(out *bufio.Writer, f io.Reader, report func(error))) error {
	stdout, stderr := c.Out, c.Err
	if stdout == nil {
		stdout = os.Stdout
	}
	if stderr == nil {
		stderr = os.Stderr
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("trace file cannot be read: %w", err)
	}
	defer f.Close()

	var failed error
	out := bufio.NewWriter(stdout)
	inspect(out, f, func(err error) {
		var bad *event.LineError
		if !errors.As(err, &bad) {
			failed = err
		} else if _, err := fmt.Fprintf(stderr, "%s:%d: %s; line skipped\n", path, bad.Line, bad.Reason); err != nil {
			failed = err
		}
	})
	return errors.Join(failed, out.Flush())
}

// valid returns the events and passes the errors to report.
func valid(events iter.Seq2[event.Event, error], report func(error)) iter.Seq[event.Event] {
	return func(yield func(event.Event) bool) {
		for e, err := range events {
			if err != nil {
				report(err)
			} else if !yield(e) {
				return
			}
		}
	}
}

// A lineHeap has the earliest line first, and of equal timestamps the line that was first
// in the file.
type lineHeap []timedLine

type timedLine struct {
	at   time.Time
	n    int
	told bool // an event of interest, so it is printed
	text string
}

func (h lineHeap) Len() int { return len(h) }
func (h lineHeap) Less(i, j int) bool {
	return h[i].at.Before(h[j].at) || h[i].at.Equal(h[j].at) && h[i].n < h[j].n
}
func (h lineHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *lineHeap) Push(x any)   { *h = append(*h, x.(timedLine)) }
func (h *lineHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
