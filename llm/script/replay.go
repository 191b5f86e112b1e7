package script

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/transport"
	"github.com/stonelayer/stone/llm"
)

// NotRecordedError reports that a recording contains no answer to a request.
type NotRecordedError struct {
	Request string // method, path and body of the request
	Nearest string // most similar recorded request; "" if there is none
	Differs string // first difference between the two, with some context
}

// Error returns a message that shows how the request differs from the most similar recorded request.
func (e *NotRecordedError) Error() string {
	if e.Nearest == "" {
		return "replay: this request was not recorded, and neither was any other: " + text.Cut(e.Request, 200)
	}
	return "replay: this request was not recorded; the nearest recorded one differs " + e.Differs
}

// FailureKind returns "runtime/not-recorded", which becomes the failure kind of a call that makes this request.
func (e *NotRecordedError) FailureKind() string { return "runtime/not-recorded" }

// Retryable returns false, because a retry would not find a recorded answer either.
func (e *NotRecordedError) Retryable() bool { return false }

// Player is an http.RoundTripper that answers from a recording. It is safe for concurrent
// use.
type Player struct {
	// Speed is the factor by which pieces arrive faster than they were recorded. Zero means that they all arrive immediately.
	Speed float64

	mu      sync.Mutex
	answers map[string][]*exchange // the answers by request
	order   []string
}

// Replay reads a recording.
func Replay(name string) (*Player, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	defer file.Close()
	p := &Player{answers: map[string][]*exchange{}}
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var x exchange
			if err := json.Unmarshal(line, &x); err != nil {
				return nil, fmt.Errorf("replay: %s, line %d is not an exchange: %w", name, n, err)
			}
			k := key(x.Method, x.Path, x.Body)
			if p.answers[k] == nil {
				p.order = append(p.order, k)
			}
			p.answers[k] = append(p.answers[k], &x)
		}
		if err == io.EOF {
			return p, nil
		}
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
	}
}

// Client returns an HTTP client whose requests are answered from the recording.
func (p *Player) Client() *http.Client { return &http.Client{Transport: p} }

// Mode returns llm.Replay. This becomes the Mode in the Info of a model with this transport.
func (p *Player) Mode() string { return llm.Replay }

// RoundTrip answers a request.
func (p *Player) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	x, err := p.find(key(req.Method, req.URL.Path, canonical(transport.Match(req.Context(), body))))
	if err != nil {
		return nil, err
	}
	if x.Status == 0 {
		return nil, errors.New("replay: " + x.Error)
	}
	h := http.Header{}
	for name, value := range x.Header {
		h.Set(name, value)
	}
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(p.play(req.Context(), pw, x)) }()
	return &http.Response{
		Status: http.StatusText(x.Status), StatusCode: x.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: pr, ContentLength: -1, Request: req,
	}, nil
}

func (p *Player) find(k string) (*exchange, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.answers[k]
	if len(list) == 0 {
		return nil, p.notRecorded(k)
	}
	if len(list) > 1 {
		p.answers[k] = list[1:]
	}
	return list[0], nil
}

// play writes the pieces at the times at which they were recorded.
func (p *Player) play(ctx context.Context, w io.Writer, x *exchange) error {
	begin := time.Now()
	for _, piece := range x.Pieces {
		if p.Speed > 0 {
			at := begin.Add(time.Duration(float64(piece.After) * float64(time.Millisecond) / p.Speed))
			select {
			case <-time.After(time.Until(at)):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if _, err := w.Write(piece.data()); err != nil {
			return err
		}
	}
	if x.Error != "" {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (p *Player) notRecorded(k string) error {
	e := &NotRecordedError{Request: k}
	e.Nearest, e.Differs = suggest.Nearest(k, slices.Values(p.order))
	return e
}

func key(method, path string, body json.RawMessage) string {
	return method + " " + path + " " + string(body)
}

func newPiece(after time.Duration, data []byte) piece {
	p := piece{After: after.Milliseconds()}
	if utf8.Valid(data) {
		p.Text = string(data)
	} else {
		p.Bytes = bytes.Clone(data)
	}
	return p
}

func (p piece) data() []byte {
	if p.Bytes != nil {
		return p.Bytes
	}
	return []byte(p.Text)
}
