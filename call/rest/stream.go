package rest

import (
	"bytes"
	"io"
	"mime"
	"net/http"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/sse"
)

// read returns the body of a response, up to the limit. If voice is not nil, it also streams the body. Server-sent events are
// returned as their data, one event per line.
func read(resp *http.Response, limit int64, voice *event.Voice) (body []byte, tooLong bool, err error) {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		voice = nil
	}
	var text bytes.Buffer
	tell := call.VoiceWriter(voice)
	to := io.MultiWriter(&text, tell)
	var n int64
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/event-stream" {
		e := &events{to: to}
		if n, err = io.Copy(e, io.LimitReader(resp.Body, limit+1)); err == nil {
			err = e.end()
		}
	} else {
		n, err = io.Copy(to, io.LimitReader(resp.Body, limit+1))
	}
	if err == nil {
		_, err = io.WriteString(tell, "\n") // the last line may lack a line break
	}
	return text.Bytes(), n > limit, err
}

// events is a writer that passes on the data of server-sent events, one event per line.
type events struct {
	sse.Reader
	to io.Writer
}

func (e *events) Write(data []byte) (int, error) {
	e.Feed(data)
	for {
		ev, ok, err := e.Next()
		if err != nil {
			return 0, err
		}
		if !ok {
			return len(data), nil
		}
		if err := e.pass(ev); err != nil {
			return 0, err
		}
	}
}

// end passes on the last event if the blank line after it is missing.
func (e *events) end() error {
	if ev, ok := e.Flush(); ok {
		return e.pass(ev)
	}
	return nil
}

// pass writes the data of an event, except [DONE], with which many servers end a stream.
func (e *events) pass(ev sse.Event) error {
	if string(ev.Data) == "[DONE]" {
		return nil
	}
	line := append(bytes.ReplaceAll(ev.Data, []byte("\n"), []byte(" ")), '\n')
	_, err := e.to.Write(line)
	return err
}
