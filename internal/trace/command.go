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

// reorderWindow is the number of lines that RunLifecycle holds back to sort events by timestamp, because concurrent lanes write
// events slightly out of order.
const reorderWindow = 4096

// A Command inspects trace files and prints the results. Its methods return an error only if the file cannot be opened or read to
// its end, or the result cannot be written. They skip unusable lines, and report each of them with one line on Err.
type Command struct {
	Out io.Writer // for results; nil means standard output
	Err io.Writer // for reports about lines; nil means standard error
}

// RunTally prints the number of events in total and then by type, most frequent first.
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
// comes too late in the file is moved up past at most 4,096 events. An event without a timestamp stays after the event it follows.
// The first lines of a long file are printed long before the file has been read completely.
func (c Command) RunLifecycle(path string) error {
	return c.run(path, printLifecycle)
}

func printLifecycle(out *bufio.Writer, f io.Reader, report func(error)) {
	var window lineHeap
	var last time.Time
	n, printed := 0, 0
	// The window contains all events, and they are filtered when they leave it. Otherwise an event would be held back until 4,096
	// events that are printed have been read.
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

// PayloadOptions specify which request RunPayload prints.
type PayloadOptions struct {
	Ashlar string // name of the ashlar; "" means any
	Turn   *int   // turn of the model; nil means any
	Last   bool   // select the last matching request instead of the first
}

// RunPayload prints a request to a model: ashlar, turn, model, tools, the beginning of the system prompt, and a line for each
// message. If no request matches, it says so, and explains how to record messages.
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

// run opens the file and calls inspect with a function that reports read errors. It returns the error that ended reading or
// writing.
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

// valid yields the events, and calls report with each error.
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

// A lineHeap is a heap with the earliest line first. Of lines with equal timestamps, the one that comes first in the file is
// first.
type lineHeap []timedLine

type timedLine struct {
	at   time.Time
	n    int
	told bool // the event is to be printed
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
