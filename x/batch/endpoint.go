package batch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/retryafter"
	"github.com/stonelayer/stone/llm"
)

// A provider implements the batch protocol of one model provider.
type provider interface {
	name() string
	// bounds returns the maximum number of inputs in a batch, and its maximum size in bytes.
	bounds() (inputs, bytes int)
	// inputs returns the number of inputs in a request: the number of texts in a request for vectors, and one in any other
	// request.
	inputs(line json.RawMessage) int
	// speaks reports whether a request to one of the provider's paths calls a model.
	speaks(h http.Header, body fields) bool
	// line returns the body of a request in a batch, and the part of it that identifies the request, without fields that depend
	// on the remaining budget.
	line(body fields) (line, same json.RawMessage, err error)
	model(line json.RawMessage) string
	// make creates a batch and returns its id. An *llm.HTTPError below 500 means that no batch was created.
	make(ctx context.Context, to endpoint, name string, group []*request) (id string, err error)
	// find looks for the batch b, whose creation may have failed, among the provider's batches except the known ones. The result
	// is uncertain as long as an unfinished batch may be b.
	find(ctx context.Context, to endpoint, b *made, known map[string]bool) (id string, sure bool, err error)
	state(ctx context.Context, to endpoint, id string) (Status, end, error)
	// answers calls each for every request that was answered or that failed individually.
	answers(ctx context.Context, to endpoint, id string, each func(key string, a answer)) error
	cancel(ctx context.Context, to endpoint, id string) error
}

// An end describes whether and how a batch has ended.
type end struct {
	over     bool
	canceled bool   // whether somebody cancelled the batch
	refused  bool   // whether none of its requests was processed
	how      string // such as "it has expired"
}

// An endpoint is the destination of a request, including the keys.
type endpoint struct {
	provider provider
	url      string // the URL without the query
	header   http.Header
	query    string // the query, which may contain a key
	next     http.RoundTripper
}

// endpointOf returns the endpoint of a request, and reports whether the request may be a call of a model.
func endpointOf(req *http.Request, next http.RoundTripper) (to endpoint, ok bool) {
	if req.Method != http.MethodPost || req.Body == nil {
		return to, false
	}
	path := strings.TrimRight(req.URL.Path, "/")
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		to.provider = openAI{"/chat/completions"}
	case strings.HasSuffix(path, "/responses"):
		to.provider = openAI{"/responses"}
	case strings.HasSuffix(path, "/embeddings"):
		to.provider = openAI{"/embeddings"}
	case strings.HasSuffix(path, "/messages"):
		to.provider = anthropic{}
	case strings.HasSuffix(path, ":streamGenerateContent"), strings.HasSuffix(path, ":generateContent"):
		to.provider = gemini{}
	case strings.HasSuffix(path, embeds):
		to.provider = gemini{vectors: true}
	default:
		return to, false
	}
	u := *req.URL
	query := u.Query()
	query.Del("alt")
	u.RawQuery, u.Fragment = "", ""
	to.url, to.query, to.header, to.next = u.String(), query.Encode(), req.Header.Clone(), next
	to.header.Del("Content-Length")
	return to, true
}

// base returns the URL without its last path element.
func (to endpoint) base(last string) string { return strings.TrimSuffix(to.url, last) }

// tries is the maximum number of attempts at a request that is temporarily rejected.
const tries = 5

// do sends a request with the keys of the endpoint and returns the body of its answer, at most 64 MB. It retries errors for which
// llm.Retryable returns true. If safe is not set, it retries only after rate limits, because the provider may have carried out
// any other request.
func (to endpoint) do(ctx context.Context, method, url, contentType string, body []byte, safe bool) ([]byte, error) {
	resp, err := to.open(ctx, method, url, contentType, body, safe)
	if err != nil {
		return nil, err
	}
	defer resp.Close()
	const most = 64 << 20
	data, err := io.ReadAll(io.LimitReader(resp, most+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("the provider sent more than %d MB", most>>20)
	}
	return data, err
}

// open is like do, but for an answer of any length.
func (to endpoint) open(ctx context.Context, method, url, contentType string, body []byte, safe bool) (io.ReadCloser, error) {
	for try := 1; ; try++ {
		answer, err := to.try(ctx, method, url, contentType, body)
		if err == nil {
			return answer, nil
		}
		refused, _ := errors.AsType[*llm.HTTPError](err)
		certain := safe && (refused == nil || refused.Status != http.StatusConflict) || refused != nil && refused.Status == http.StatusTooManyRequests
		if !certain || !llm.Retryable(err) || try == tries || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-time.After(retryafter.Pause(try, time.Second, time.Minute, llm.RetryAfter(err))):
		case <-ctx.Done():
			return nil, cmp.Or(context.Cause(ctx), err)
		}
	}
}

func (to endpoint) try(ctx context.Context, method, url, contentType string, body []byte) (io.ReadCloser, error) {
	if to.query != "" {
		mark := "?"
		if strings.Contains(url, "?") {
			mark = "&"
		}
		url += mark + to.query
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the provider's URL cannot be read")
	}
	req.Header = to.header.Clone()
	if req.Header.Set("Content-Type", contentType); contentType == "" {
		req.Header.Del("Content-Type")
	}
	resp, err := to.next.RoundTrip(req)
	if err != nil {
		return nil, &llm.ConnectError{URL: to.url, Err: err}
	}
	if resp.StatusCode/100 == 2 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	const most = 4 << 10
	text, _ := io.ReadAll(io.LimitReader(resp.Body, most)) // a part of the body suffices
	keys := new(redact.Set)                                // a server may repeat the request in its answer
	for _, values := range to.header {
		keys.NoteHeader(values...)
	}
	keys.NoteURL(url)
	return nil, &llm.HTTPError{Status: resp.StatusCode, Body: strings.ToValidUTF8(keys.CleanCut(string(text)), "\uFFFD"), RetryAfter: retryafter.Read(resp.Header, time.Now())}
}

// get requests a URL like do and decodes the JSON of the answer.
func get[T any](ctx context.Context, to endpoint, url string) (v T, err error) {
	data, err := to.do(ctx, http.MethodGet, url, "", nil, true)
	if err != nil {
		return v, err
	}
	return decode[T](data)
}

// lines downloads a file and calls each for every line.
func lines(from io.Reader, each func(line []byte) error) error {
	d := json.NewDecoder(from)
	for {
		var line json.RawMessage
		if err := d.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("a line cannot be read: %w", err)
		}
		if err := each(line); err != nil {
			return err
		}
	}
}

// fields are the members of a JSON object by name.
type fields map[string]json.RawMessage

// without returns the JSON of the object without the named fields.
func (f fields) without(names ...string) (json.RawMessage, error) {
	other := fields{}
	for name, value := range f {
		other[name] = value
	}
	for _, name := range names {
		delete(other, name)
	}
	return json.Marshal(other)
}
