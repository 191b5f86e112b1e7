package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/sse"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
)

// Decoder decodes one answer. Its methods append deltas to out and return the result.
type Decoder interface {
	// Event handles one event. It reports whether the answer is complete.
	Event(out []llm.Delta, name string, data []byte) ([]llm.Delta, bool, error)
	// Whole handles an answer that the server sent as one JSON document.
	Whole(out []llm.Delta, data []byte) ([]llm.Delta, error)
	// End ends the answer, after the last event or before an error. It returns an error if the answer is not complete.
	End(out []llm.Delta) ([]llm.Delta, error)
	// Reply returns the reply received so far. It is called after End.
	Reply() *llm.Reply
}

const (
	// maxWhole is the maximum size of an answer that is one JSON document, in bytes.
	maxWhole = 64 << 20
	// maxSaid is the maximum total size of the text, reasoning and arguments of a streamed answer, in bytes.
	maxSaid = 32 << 20
	// maxStream is the maximum total size of a streamed answer's events, in bytes; most of it is not text.
	maxStream = 512 << 20
)

// errStopped means that the consumer has stopped ranging over the deltas.
var errStopped = errors.New("stopped")

// Stream posts the body and yields the deltas, with as many attempts as the client's settings allow. The function decoder returns
// a new Decoder for each attempt. On success, Stream returns the reply. It returns nil after it has yielded an error or the
// consumer has stopped.
func (c *Client) Stream(ctx context.Context, body Body, decoder func(requestID string) Decoder, yield func(llm.Delta, error) bool) *llm.Reply {
	if total := c.timeouts.Total; total > 0 {
		var cancel context.CancelFunc
		ctx, cancel = limit.WithTimeout(ctx, total, &llm.TimeoutError{Phase: "total", Limit: total})
		defer cancel()
	}
	redact.From(ctx).Join(c.own)
	start := time.Now()
	q := question{http.MethodPost, c.url, body.json, body.tokens, body.answer}
	var rest Decoder // the decoder of an answer whose missing part is requested
	for attempt := 1; ; attempt++ {
		s := &session{client: c, decoder: decoder, rest: rest, yield: yield, start: start, reply: &llm.Reply{}}
		o := s.attempt(ctx, q, attempt)
		if o.err == nil && o.path == "" {
			return s.reply
		}
		if !s.follows(ctx, &o, attempt) {
			return nil
		}
		if o.path != "" {
			q, rest = question{http.MethodGet, c.url.JoinPath(o.path), nil, 0, false}, s.decoded
			if o.err == nil { // the model has not finished yet
				attempt = 0
			}
		}
	}
}

// session is one attempt.
type session struct {
	client  *Client
	decoder func(requestID string) Decoder
	rest    Decoder // if not nil, the answer continues this one
	decoded Decoder // nil until the answer has started
	yield   func(llm.Delta, error) bool
	start   time.Time

	place     *limit.Place
	quota     limit.Answer // the server's limits, until they are passed to the place
	x         *exchange
	progress  *time.Ticker
	quiet     *time.Timer // expires when the current phase takes too long
	phase     string      // the current phase, as in TimeoutError
	limit     time.Duration
	requestID string
	handed    bool      // whether the consumer has received part of the answer: text, reasoning, a refusal or a call
	spoke     time.Time // when the answer last made progress
	went      bool      // whether the answer has made progress since spoke
	deltas    []llm.Delta
	halves    halves
	said      int        // the number of bytes of text and arguments
	streamed  int        // the number of bytes of events
	reply     *llm.Reply // never nil
}

func (s *session) run(ctx context.Context, q question) error {
	if s.rest != nil {
		s.reply = s.rest.Reply()
	}
	s.progress = time.NewTicker(s.client.progress)
	defer s.progress.Stop()
	s.x = s.client.begin(ctx, q)
	regular := false
	defer func() { s.x.end(regular) }()
	s.expect("first byte", s.client.timeouts.FirstByte)
	defer s.quiet.Stop()

	mediaType, err := s.open(ctx)
	if err != nil {
		return err
	}
	err = s.body(ctx, s.decoded, mediaType)
	regular = err == nil
	return err
}

// body decodes the body. The first byte determines its form, because proxies often send wrong media types: an object or a list is
// a document, even if a stream was requested.
func (s *session) body(ctx context.Context, d Decoder, mediaType string) error {
	var first []byte
	for len(first) == 0 {
		piece, ok, err := s.await(ctx)
		if err != nil {
			return s.finish(d, err)
		}
		if !ok {
			break
		}
		first = bytes.TrimLeft(bytes.TrimPrefix(piece, []byte("\xef\xbb\xbf")), " \t\r\n")
	}
	switch {
	case len(first) == 0 && (mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")), len(first) > 0 && (first[0] == '{' || first[0] == '['):
		return s.whole(ctx, d, first)
	case len(first) > 0 && first[0] == '<', len(first) == 0 && mediaType == "text/html":
		return &llm.ProtocolError{Reason: "got an HTML page instead of an event stream; check the URL", RequestID: s.requestID}
	}
	return s.events(ctx, d, first)
}

// open waits for the response header, creates the decoder and returns the media type.
func (s *session) open(ctx context.Context) (mediaType string, err error) {
	h, err := s.awaitHead(ctx)
	if err != nil {
		return "", err
	}
	s.requestID, s.spoke = h.requestID, time.Now()
	if s.quota = h.quota; h.status != 0 && !refused(h.err) {
		s.place.Heard(s.quota)
		s.quota = limit.Answer{}
	}
	if s.rest == nil {
		s.reply.RequestID = h.requestID
	}
	if h.err != nil {
		return "", h.err
	}
	if s.decoded = s.rest; s.rest == nil {
		if !s.yield(llm.Delta{Kind: llm.Start, Reply: &llm.Reply{RequestID: h.requestID}}, nil) {
			return "", errStopped
		}
		s.decoded = s.decoder(h.requestID)
	}
	return h.mediaType, nil
}

// events decodes an event stream.
func (s *session) events(ctx context.Context, d Decoder, first []byte) error {
	var reader sse.Reader
	head := string(first[:min(len(first), 100)])
	for piece := first; ; {
		reader.Feed(piece)
		for {
			ev, ok, err := reader.Next()
			if err != nil {
				return s.finish(d, &llm.ProtocolError{Reason: err.Error(), RequestID: s.requestID})
			}
			if !ok {
				break
			}
			if complete, err := s.event(d, ev); complete || err != nil {
				return s.finish(d, err)
			}
		}
		if s.went { // the clock is read once per piece, which contains many events
			s.spoke, s.went = time.Now(), false
		}
		next, ok, err := s.await(ctx)
		if err != nil {
			return s.finish(d, err)
		}
		if !ok {
			break
		}
		piece = next
	}
	cut := s.x.err
	if ev, ok := reader.Flush(); ok && cut == nil {
		if complete, err := s.event(d, ev); complete {
			return s.finish(d, nil)
		} else if e, ok := errors.AsType[*llm.ProtocolError](err); ok {
			// An incomplete event results from the broken connection and is not a fault of the server.
			cut = errors.New(e.Reason)
		} else if err != nil {
			return s.finish(d, err)
		}
	}
	if cut != nil {
		return s.finish(d, &llm.TruncatedError{RequestID: s.requestID, Err: cut})
	}
	if s.streamed == 0 && head != "" {
		return s.finish(d, &llm.ProtocolError{Reason: fmt.Sprintf("the answer is neither an event stream nor JSON: %q", head), RequestID: s.requestID})
	}
	return s.finish(d, nil)
}

func (s *session) event(d Decoder, ev sse.Event) (bool, error) {
	deltas, complete, err := d.Event(s.deltas[:0], ev.Name, s.halves.join(ev.Data))
	if s.deltas = deltas; !s.pass() {
		return false, errStopped
	}
	if err == nil {
		err = s.count(len(ev.Data))
	}
	return complete, err
}

// count counts the bytes of an event and its text, and fails if a server never stops.
func (s *session) count(event int) error {
	s.streamed += event
	for i := range s.deltas {
		s.said += len(s.deltas[i].Text)
	}
	if s.said > maxSaid || s.streamed > maxStream {
		return &llm.ProtocolError{Reason: fmt.Sprintf("an answer longer than %d MiB", maxSaid>>20), RequestID: s.requestID}
	}
	return nil
}

// whole decodes an answer that is not a stream.
func (s *session) whole(ctx context.Context, d Decoder, first []byte) error {
	doc := bytes.Clone(first)
	for {
		piece, ok, err := s.await(ctx)
		if err != nil {
			return s.finish(d, err)
		}
		if !ok {
			break
		}
		if doc = append(doc, piece...); len(doc) > maxWhole {
			return s.finish(d, &llm.ProtocolError{Reason: "a document longer than 64 MiB", RequestID: s.requestID})
		}
	}
	if s.x.err != nil {
		return s.finish(d, &llm.TruncatedError{RequestID: s.requestID, Err: s.x.err})
	}
	docs := documents(doc)
	if len(docs) > 1 { // the events of a stream, one after the other
		for _, one := range docs {
			if complete, err := s.event(d, sse.Event{Data: one}); complete || err != nil {
				return s.finish(d, err)
			}
		}
		return s.finish(d, nil)
	}
	deltas, err := d.Whole(s.deltas[:0], docs[0])
	if s.deltas = deltas; !s.pass() {
		return errStopped
	}
	return s.finish(d, err)
}

// documents returns the JSON documents of a body, usually one. It ignores text after the end of an event stream.
func documents(body []byte) (docs [][]byte) {
	if json.Valid(body) {
		return [][]byte{body}
	}
	in := json.NewDecoder(bytes.NewReader(body))
	for {
		var one json.RawMessage
		if err := in.Decode(&one); err == nil {
			docs = append(docs, one)
			continue
		}
		rest := bytes.TrimSpace(body[in.InputOffset():])
		if len(docs) == 0 || len(rest) > 0 && !bytes.HasPrefix(rest, []byte("data:")) {
			return [][]byte{body} // so that the decoder reports the error
		}
		return docs
	}
}

// finish ends the decoder and stores its reply. A cause takes precedence over the decoder's own error.
func (s *session) finish(d Decoder, cause error) error {
	if errors.Is(cause, errStopped) {
		return cause
	}
	deltas, err := d.End(s.deltas[:0])
	s.deltas, s.reply = deltas, d.Reply()
	if !s.pass() {
		return errStopped
	}
	if cause = cmp.Or(cause, err); cause != nil {
		return cause
	}
	switch rules.EndingOf(s.reply.StopReason) {
	case rules.Failed, rules.Retry:
		return &llm.ProviderError{Message: "the model stopped abnormally: " + s.reply.StopReason, Type: s.reply.StopReason, RequestID: s.requestID}
	}
	return nil
}

// pass yields the decoded deltas.
func (s *session) pass() bool {
	s.went = s.went || len(s.deltas) > 0
	for i := range s.deltas {
		if k := s.deltas[i].Kind; k >= llm.Text && k <= llm.ToolInput {
			s.handed = true
		}
		if !s.yield(s.deltas[i], nil) {
			return false
		}
	}
	return true
}

// expect starts a phase that may last at most limit. Zero means unlimited.
func (s *session) expect(phase string, limit time.Duration) {
	s.phase, s.limit = phase, limit
	if limit == 0 {
		limit = 1<<63 - 1
	}
	if s.quiet == nil {
		s.quiet = time.NewTimer(limit)
		return
	}
	s.quiet.Reset(limit)
}

// pings is the number of Silence periods for which an answer may make no progress while the server sends keep-alives. A model
// with hidden thinking sends nothing else, and a broken server may send them forever.
const pings = 5

// alive restarts the timer for the next piece.
func (s *session) alive() {
	limit := s.client.timeouts.Silence
	if limit == 0 {
		s.expect("silence", 0)
		return
	}
	still := pings * limit
	if left := still - time.Since(s.spoke); left < limit {
		s.expect("silence", max(left, 1))
		s.limit = still
		return
	}
	s.expect("silence", limit)
}

// awaitHead waits for the head of the answer.
func (s *session) awaitHead(ctx context.Context) (head, error) {
	for {
		select {
		case h := <-s.x.head:
			if h.err != nil && ctx.Err() != nil {
				return h, s.ended(ctx)
			}
			return h, nil
		case <-s.progress.C:
			if !s.tick("") {
				return head{}, errStopped
			}
		case <-s.quiet.C:
			return head{}, s.timeout()
		case <-ctx.Done():
			return head{}, s.ended(ctx)
		}
	}
}

// await returns the next piece of the body, or false at its end.
func (s *session) await(ctx context.Context) ([]byte, bool, error) {
	for {
		select {
		case piece, ok := <-s.x.pieces:
			if !ok && ctx.Err() != nil {
				return nil, false, s.ended(ctx)
			}
			if ok {
				s.alive()
			}
			return piece, ok, nil
		case <-s.progress.C:
			if !s.tick("") {
				return nil, false, errStopped
			}
		case <-s.quiet.C:
			return nil, false, s.timeout()
		case <-ctx.Done():
			return nil, false, s.ended(ctx)
		}
	}
}

// tick yields a Progress. The argument waits is the reason why the request is waiting, or "" if it is running.
func (s *session) tick(waits string) bool {
	return s.yield(llm.Delta{Kind: llm.Progress, Elapsed: time.Since(s.start), Text: waits}, nil)
}

func (s *session) timeout() error {
	return &llm.TimeoutError{Phase: s.phase, Limit: s.limit, RequestID: s.requestID}
}

// ended returns the reason why the context ended: the total timeout or the caller's cause.
func (s *session) ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if e, ok := errors.AsType[*llm.TimeoutError](cause); ok {
		return &llm.TimeoutError{Phase: e.Phase, Limit: e.Limit, RequestID: s.requestID}
	}
	return fmt.Errorf("llm: request ended by its context: %w", cause)
}
