package call

import (
	"bytes"
	"io"
	"strings"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/edn"
)

// A piece is one line of a program's streamed answer: either the next part of the text or a notice that all parts before it are
// void.
type piece struct {
	text   string
	void   bool
	reason string // the reason why all text before this piece is void
}

// readPiece decodes one line of the form {"type":"delta","text":"…"} or {"type":"retracted","reason":"…"}, in JSON or EDN.
// Further fields are allowed, so the output of stone act --stream is a stream too.
func readPiece(line []byte) (p piece, ok bool) {
	if !bytes.Contains(line, []byte("delta")) && !bytes.Contains(line, []byte("retracted")) {
		return p, false
	}
	v, err := edn.ReadEither(line, envelopeLimits)
	if err != nil {
		return p, false
	}
	kind, _ := v.Field("type")
	switch name, _ := kind.Name(); name {
	case "delta":
		text, found := v.Field("text")
		return piece{text: text.Text()}, found && text.Kind() == edn.KindString
	case "retracted":
		reason, _ := v.Field("reason")
		return piece{void: true, reason: reason.Text()}, true
	}
	return p, false
}

// nextPiece returns the piece on the first nonblank line of data and the data after that line. It returns false if the line is
// not a piece.
func nextPiece(data []byte) (p piece, rest []byte, ok bool) {
	data = bytes.TrimLeft(data, " \t\r\n")
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	p, ok = readPiece(line)
	return p, rest, ok
}

// joinPieces joins the pieces at the beginning of an output and returns the output that follows them as rest. It returns false if
// there are no pieces.
func joinPieces(data []byte) (text string, rest []byte, ok bool) {
	var all strings.Builder
	for rest = data; ; ok = true {
		p, after, more := nextPiece(rest)
		if !more {
			return all.String(), rest, ok
		}
		if p.void {
			all.Reset()
		}
		all.WriteString(p.text)
		rest = after
	}
}

// VoiceWriter returns a writer for the output of a program, in the form that [ReadOutput] reads. It streams each piece of the
// answer as soon as its line is complete. It never fails, and ignores everything after the pieces. With a nil voice, it ignores
// all output. It buffers at most one line, whose length the caller limits.
func VoiceWriter(v *event.Voice) io.Writer {
	if v == nil {
		return io.Discard
	}
	return &voiceWriter{voice: v}
}

type voiceWriter struct {
	voice *event.Voice
	line  []byte // the beginning of an incomplete line
	over  bool   // whether the pieces have ended
}

func (w *voiceWriter) Write(data []byte) (int, error) {
	n := len(data)
	for !w.over {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		w.line = append(w.line, line...)
		if !whole {
			break
		}
		data = rest
		w.say(w.line)
		w.line = w.line[:0]
	}
	return n, nil
}

func (w *voiceWriter) say(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	p, ok := readPiece(line)
	switch w.over = !ok; {
	case !ok:
	case p.void:
		w.voice.Again(p.reason)
	case p.text != "":
		w.voice.Say(event.Text, p.text)
	}
}

// speak streams the parts of a complete reply, unless the voice has already streamed something.
func (r *Reply) speak(v *event.Voice) {
	if v.Said() {
		return
	}
	for _, part := range r.parts {
		if part != "" {
			v.Say(event.Text, part)
		}
	}
}
