package uci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/sandbox"
)

// found is the result of a search.
type found struct {
	move string // "" until the engine has sent it
	pv   []string
	eval *eval
}

// search starts the engine and runs one search.
func (c Config) search(ctx context.Context, p *position, in input) (*found, error) {
	running, end := context.WithCancel(ctx)
	defer end()
	cmd := sandbox.Command(running, sandbox.Policy{Method: sandbox.Unconfined}, c.Command[0], c.Command[1:]...)
	input, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer input.Close()
	defer stdin.Close()
	cmd.Stdin = input
	d := &dialogue{to: stdin, options: c.Options, position: p.String(), search: "go" + c.bounds(in), tell: event.At(ctx).Report(), over: func() {
		// An engine that does not exit by itself is stopped.
		time.AfterFunc(100*time.Millisecond, end)
	}}
	cmd.Stdout = d
	start := make(chan error, 1)
	go func() { start <- d.send("uci") }()
	err = cmd.Run()
	stdin.Close()
	<-start // from here on, no goroutine writes
	switch {
	case d.found.move != "":
		return &d.found, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case d.err != nil:
		return nil, &call.Error{Type: engineFailed, Message: d.err.Error(), Cause: d.err}
	case errors.As(err, new(*sandbox.ExitError)):
		return nil, &call.Error{Type: engineFailed, Message: fmt.Sprintf("the engine ended without a move (%v)", err), Cause: err}
	case err == nil:
		return nil, &call.Error{Type: engineFailed, Message: "the engine ended without a move (exit status 0)"}
	default:
		return nil, &call.Error{Type: reasons.Unavailable, Message: "the engine cannot be started: " + err.Error(), Cause: err}
	}
}

func (c Config) bounds(in input) string {
	millis := in.MoveTimeMS
	if millis == 0 && in.Depth == 0 {
		millis = int(c.MoveTime.Milliseconds())
	}
	bounds := ""
	if millis > 0 {
		bounds += fmt.Sprintf(" movetime %d", millis)
	}
	if in.Depth > 0 {
		bounds += fmt.Sprintf(" depth %d", in.Depth)
	}
	return bounds
}

// A dialogue reads the engine's output and replies to it. The engine's input remains open until the engine has moved, because
// engines stop searching at the end of their input.
type dialogue struct {
	to       io.WriteCloser
	options  map[string]string
	position string
	search   string
	tell     *event.Reporter
	over     func()

	line  []byte // incomplete line
	found found
	err   error
}

const maxLine = 1 << 20

// Write receives the engine's output. It never returns an error, because that would block the engine.
func (d *dialogue) Write(text []byte) (int, error) {
	n := len(text)
	for d.err == nil && d.found.move == "" {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		d.line = append(d.line, line...)
		if len(d.line) > maxLine {
			d.fail(fmt.Errorf("the engine wrote a line of more than %d bytes", maxLine))
		}
		if !whole {
			break
		}
		d.hear(strings.Fields(string(d.line)))
		d.line, text = d.line[:0], rest
	}
	return n, nil
}

func (d *dialogue) fail(err error) {
	d.err = err
	d.over()
}

// send writes lines to the engine.
func (d *dialogue) send(lines ...string) error {
	_, err := io.WriteString(d.to, strings.Join(lines, "\n")+"\n")
	return err
}

func (d *dialogue) hear(words []string) {
	if len(words) == 0 {
		return
	}
	var err error
	switch words[0] {
	case "uciok":
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(d.options)) {
			lines = append(lines, fmt.Sprintf("setoption name %s value %s", name, d.options[name]))
		}
		err = d.send(append(lines, "isready")...)
	case "readyok":
		err = d.send("ucinewgame", "position fen "+d.position, d.search)
	case "info":
		d.info(words[1:])
	case "bestmove":
		if len(words) < 2 {
			d.fail(errors.New("the engine sends bestmove without a move"))
			return
		}
		d.found.move = words[1]
		_ = d.send("quit") // it does not matter if the engine has already exited
		d.to.Close()
		d.over()
		return
	}
	if err != nil {
		d.fail(fmt.Errorf("the engine does not read its input: %w", err))
	}
}

// info reads the evaluation of the best line.
func (d *dialogue) info(words []string) {
	e := eval{}
	for i := 0; i+1 < len(words); i++ {
		switch words[i] {
		case "string":
			return
		case "multipv":
			if words[i+1] != "1" {
				return
			}
		case "depth":
			e.Depth, _ = strconv.Atoi(words[i+1]) // the protocol requires a number
		case "cp", "mate":
			n, err := strconv.Atoi(words[i+1])
			if err != nil {
				continue
			}
			if e.CP, e.Mate = &n, nil; words[i] == "mate" {
				e.CP, e.Mate = nil, &n
			}
		case "lowerbound", "upperbound":
			return
		case "pv":
			if e.CP != nil || e.Mate != nil {
				d.found.eval = &e
			}
			d.found.pv = slices.Clone(words[i+1:])
			d.tell.Progress(fmt.Sprintf("depth %d: %s", e.Depth, strings.Join(d.found.pv, " ")), float64(e.Depth), 0)
			return
		}
	}
}
