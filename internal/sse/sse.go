// Package sse reads server-sent events (the text/event-stream format of the HTML
// standard) from pieces of a body as they arrive.
//
// The caller feeds the pieces to a [Reader], so the caller can also wait for other things. An event that is complete within one
// piece is not copied.
package sse

import (
	"bytes"
	"errors"
)

// MaxEvent is the maximum size of an event in bytes.
const MaxEvent = 16 << 20

// ErrTooLong is returned for an event longer than MaxEvent.
var ErrTooLong = errors.New("sse: an event is longer than 16 MiB")

// Event is a server-sent event. Data is valid until the Reader's next method call.
type Event struct {
	Name string // "" if the stream has not set one
	Data []byte // data lines joined by line feeds
}

// Reader splits a stream into events. The zero Reader is ready to use.
type Reader struct {
	chunk []byte // unread rest of the last piece
	line  []byte // beginning of an incomplete line
	data  []byte // data of the current event so far; may point into chunk
	owned []byte // buffer for data that must outlive chunk

	name    string
	named   string // last name; kept because most events of a stream have the same name
	id      string // ID set by the current or an earlier event
	lastID  string
	hasData bool
	skipLF  bool // the last piece ended with CR, so an LF that follows belongs to it
	started bool // a byte order mark is skipped only at the start of the stream
}

// Feed passes the next piece to the Reader. The piece must not change until Next has returned false.
func (r *Reader) Feed(p []byte) {
	if r.skipLF && len(p) > 0 {
		r.skipLF = false
		if p[0] == '\n' {
			p = p[1:]
		}
	}
	r.chunk = p
}

// Next returns the next complete event, or false if it needs more bytes.
func (r *Reader) Next() (Event, bool, error) {
	for {
		line, ok := r.nextLine()
		if !ok {
			r.keep()
			if len(r.line)+len(r.data) > MaxEvent {
				return Event{}, false, ErrTooLong
			}
			return Event{}, false, nil
		}
		if len(line) > 0 {
			r.field(line)
			continue
		}
		if ev, ok := r.dispatch(); ok {
			return ev, true, nil
		}
	}
}

// Flush returns the last event of a stream that does not end with a blank line. According to the standard such an event is
// dropped, but many servers send no blank line after the last event.
func (r *Reader) Flush() (Event, bool) {
	if len(r.line) > 0 {
		line := bytes.Clone(r.line)
		r.line = r.line[:0]
		r.field(line)
	}
	return r.dispatch()
}

// nextLine returns the next line without its terminator: CR, LF or CRLF.
func (r *Reader) nextLine() ([]byte, bool) {
	end := bytes.IndexByte(r.chunk, '\n')
	next := end + 1
	if end < 0 {
		end = len(r.chunk)
	}
	if cr := bytes.IndexByte(r.chunk[:end], '\r'); cr >= 0 {
		if cr+1 == len(r.chunk) {
			r.skipLF = true
		}
		if next == 0 || cr+1 != end {
			next = cr + 1
		}
		end = cr
	} else if next == 0 {
		r.line = append(r.line, r.chunk...)
		r.chunk = nil
		return nil, false
	}
	line := r.chunk[:end]
	r.chunk = r.chunk[next:]
	if len(r.line) > 0 {
		r.line = append(r.line, line...)
		line = r.line
		r.line = r.line[:0]
	}
	if !r.started {
		r.started = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line, true
}

func (r *Reader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if !r.hasData && &line[0] != first(r.line) {
			r.data, r.hasData = value, true
			return
		}
		r.own()
		if r.hasData {
			r.owned = append(r.owned, '\n')
		}
		r.owned = append(r.owned, value...)
		r.data, r.hasData = r.owned, true
	case "id":
		if r.id != string(value) && bytes.IndexByte(value, 0) < 0 {
			r.id = string(value)
		}
	case "event":
		if r.named != string(value) {
			r.named = string(value)
		}
		r.name = r.named
	}
}

// LastID returns the ID that a client sends as Last-Event-ID to continue the stream, or "" if the stream has sent none. A stream
// may send an ID without an event.
func (r *Reader) LastID() string { return r.lastID }

// dispatch ends the current event at a blank line. It drops an event without data.
func (r *Reader) dispatch() (Event, bool) {
	r.lastID = r.id
	ev := Event{Name: r.name, Data: r.data}
	ok := r.hasData
	r.name, r.data, r.hasData = "", nil, false
	return ev, ok
}

// keep copies the data out of the current piece, because the caller is about to reuse the piece.
func (r *Reader) keep() {
	if r.hasData {
		r.own()
	}
}

// own moves the event's data into the Reader's own buffer.
func (r *Reader) own() {
	if len(r.data) > 0 && first(r.data) == first(r.owned) {
		return
	}
	r.owned = append(r.owned[:0], r.data...)
	r.data = r.owned
}

func first(b []byte) *byte {
	if cap(b) == 0 {
		return nil
	}
	return &b[:1][0]
}
