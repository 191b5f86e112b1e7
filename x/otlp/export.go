package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/x/internal/spans"
)

// Config configures an export.
type Config struct {
	// URL is the URL of the collector, such as http://127.0.0.1:4318. The path of the endpoint, /v1/traces, is appended unless it
	// is present or Exact is set.
	URL   string
	Exact bool

	// JSON selects JSON from the start. Otherwise protobuf is sent first, and JSON if the collector does not accept protobuf.
	JSON bool

	// Header is added to every request. Its values never appear in an error.
	Header http.Header

	Service string // value of service.name; default "stone"

	// Messages adds the messages of model requests and answers to the spans. A trace file contains them only at level debug.
	Messages bool

	// Patience is how long sending a batch is retried while the collector is busy (status 429, 502, 503 or 504). Zero means 1
	// minute; a negative value means no retries. If the collector asks for a longer wait in Retry-After, the export ends with an
	// error.
	Patience time.Duration

	// Skipped is called with each [*event.LineError] in the file, and with each warning from the collector. If it is nil, they are
	// ignored.
	Skipped func(error)

	// Client sends the requests. Nil means a client that has a timeout of 30 s and does not follow redirects, because these would
	// send the headers to another server.
	Client *http.Client
}

// A Report is the result of an export.
type Report struct {
	Sent     int // number of spans that the collector accepted
	Rejected int // number of spans that the collector rejected
}

// Export sends the spans of the trace file r to a collector. It returns when all spans have been sent, a batch cannot be sent, or
// ctx is done. The report counts the spans sent until then. If the collector cannot be reached at the first attempt, Export
// returns an error at once, because the collector is probably not running. If the collector rejects spans, Export sends the
// remaining spans and then returns an error. Invalid lines of the file are skipped.
//
// Exporting the same trace again sends the same spans with the same IDs.
func Export(ctx context.Context, r io.Reader, cfg Config) (Report, error) {
	out, err := newSender(cfg)
	if err != nil {
		return Report{}, err
	}
	err = export(ctx, r, out)
	if err == nil && out.report.Rejected > 0 {
		err = fmt.Errorf("the collector rejected %d of %d spans: %s", out.report.Rejected,
			out.report.Rejected+out.report.Sent, cmp.Or(out.rejection, "it gives no reason"))
	}
	return out.report, err
}

func export(ctx context.Context, r io.Reader, out *sender) error {
	var failed error
	m := spans.New(emitter{emit: func(sp *span) {
		if failed == nil {
			failed = out.add(ctx, sp)
		}
	}})
	m.Messages = out.messages
	for e, err := range event.Read(r) {
		var bad *event.LineError
		switch {
		case errors.As(err, &bad):
			out.skipped(err)
		case err != nil:
			return err
		default:
			m.Add(e)
		}
		if failed != nil {
			return failed
		}
	}
	if m.Finish(); failed != nil {
		return failed
	}
	return out.flush(ctx)
}

// Limits on a batch. By default, collectors accept requests of up to 20 MiB, but some accept only 1 MB.
const (
	maxSpans = 512
	maxBatch = 1 << 20 // bytes
)

// add adds a span to the batch, and sends the batch when it is full.
func (s *sender) add(ctx context.Context, sp *span) error {
	if len(s.batch) > 0 && s.size+sp.size > maxBatch {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.batch, s.size = append(s.batch, sp), s.size+sp.size
	if len(s.batch) < maxSpans {
		return nil
	}
	return s.flush(ctx)
}

// flush sends the batch, unless it is empty. The batch is empty afterwards, even if flush returns an error.
func (s *sender) flush(ctx context.Context) error {
	if len(s.batch) == 0 {
		return nil
	}
	err := s.send(ctx, s.batch)
	clear(s.batch)
	s.batch, s.size = s.batch[:0], 0
	return err
}

// endpoint returns the URL that spans are sent to.
func endpoint(base string, exact bool) (*url.URL, error) {
	const path, want = "/v1/traces", "want the URL of a collector, such as http://127.0.0.1:4318"
	u, err := url.Parse(base)
	if err != nil {
		return nil, errors.New("the URL cannot be read: " + want) // err would show the whole URL
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not the URL of a collector: %s", plain(u), want)
	}
	if !exact && !strings.HasSuffix(u.Path, path) {
		u = u.JoinPath(path)
	}
	return u, nil
}

// plain returns the URL without its secret parts.
func plain(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, Opaque: u.Opaque}).String()
}
