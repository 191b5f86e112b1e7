package openai

import (
	"context"
	"hash/crc32"
	"strings"
	"time"
)

// elsewhere is the reason reported if the answer of a run differs from the text that was streamed.
const elsewhere = "the answer is not the text that was streamed: GET the response for it"

// speak calls send with each new piece of a live answer until the run has ended. While there is no new text, it calls beat at
// regular intervals.
func speak(ctx context.Context, l *Live, beat func(), said func(text string)) {
	if l == nil {
		return // another process executes the run, or the run has ended
	}
	silence := time.NewTicker(heartbeat)
	defer silence.Stop()
	for {
		text, news := l.said()
		if said(text); news == nil {
			return
		}
		select {
		case <-news:
		case <-silence.C:
			beat()
		case <-ctx.Done():
			return
		}
	}
}

// An event that contains text of a live answer has a special number: the number of the event before the text, plus a place. The
// place consists of the number of bytes sent and a checksum of them. So a stream can be continued after any event, on any server,
// but not with the text of a different attempt.
const (
	placeBits = 20
	checkBits = placeBits - 1 // leaves numbers for events that follow the text
)

func placeOf(text string) int {
	return len(text)<<placeBits | int(crc32.ChecksumIEEE([]byte(text))>>(32-checkBits))
}

// grow sends the part of a live text that the client has not received yet.
func (e *events) grow(text string) {
	if text == "" || text == e.said {
		return
	}
	at := map[string]any{"item_id": e.live, "output_index": 0, "content_index": 0}
	if e.said == "" {
		e.message(0, e.live)
		e.send("response.content_part.added", in(at)(map[string]any{"part": textOf("")}))
		e.first = e.next
	}
	has := max(e.after-e.first, 0)
	n := has >> placeBits
	if n > len(e.said) && n <= len(text) {
		place := placeOf(text[:n])
		e.lost = has < place || n < len(text) && has != place
	}
	from := min(max(n, len(e.said)), len(text))
	e.said, e.next = text, e.first+placeOf(text)
	if e.lost {
		return
	}
	e.send("response.output_text.delta", in(at)(map[string]any{"delta": text[from:], "logprobs": []any{}}))
}

// accepted reports whether the accepted answer starts with the text that was streamed. If it does, accepted sends the rest of the
// answer.
func (e *events) accepted(output []any) bool {
	text := ""
	for _, it := range output {
		if m, ok := it.(message); ok {
			if p, ok := m.Content[0].(outputText); ok {
				text = p.Text
			}
		}
	}
	if !strings.HasPrefix(text, e.said) {
		return false
	}
	e.grow(text)
	return !e.lost
}
