package batch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/transport"
	"github.com/stonelayer/stone/kind"
)

// A session holds the requests and batches of a run during Run.
type session struct {
	Config
	id    string // the id of the run
	notes owed.Store

	mu      sync.Mutex
	seen    map[string]int      // how often each request was made in this visit
	asked   map[string]*request // the unanswered requests of this visit, by key
	given   map[string]bool     // the keys of requests that were answered in this visit
	held    []hold              // the estimated costs of the unanswered requests
	answers map[string]answer   // the answers of ended batches, by key
	batches map[string]*made    // the newest batch of each key
	lost    map[string][]*made  // for each key, the batches that did not answer it
	made    []*made             // all batches, in the order in which they were created
}

// A request is a held-back request.
type request struct {
	key  string
	line json.RawMessage // its body, without the fields that request a stream
	to   endpoint
	cost budget.Amount // the estimated cost
}

// An answer is the status and the body that a request receives.
type answer struct {
	status int
	body   json.RawMessage
}

// A hold is an amount that an account reserves during a visit and that is refunded afterwards. It contains no round trip, because
// a waiting request has not been sent.
type hold struct {
	account *budget.Account
	amount  budget.Amount
}

// begin prepares the session for a new visit: it discards the requests of the previous visit.
func (s *session) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.asked, s.given = map[string]int{}, map[string]*request{}, map[string]bool{}
}

// release refunds the amounts that were held during a visit. The next visit reserves them again for its requests.
func (s *session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.held {
		h.account.Refund(h.amount)
	}
	s.held = nil
}

// waits reports whether the run made a request that needs a batch.
func (s *session) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked) > 0
}

// over returns a transport that holds back requests to models and sends all other requests with next.
func (s *session) over(next http.RoundTripper) http.RoundTripper { return holding{s, next} }

type holding struct {
	*session
	next http.RoundTripper
}

// maxRequest is the maximum size of a request's body, in bytes.
const maxRequest = 200 << 20

// RoundTrip answers a request from a batch that has ended, or holds it back.
func (h holding) RoundTrip(req *http.Request) (*http.Response, error) {
	to, ok := endpointOf(req, h.next)
	if !ok || !transport.Batched(req.Context()) {
		return h.next.RoundTrip(req)
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRequest+1))
	if err = errors.Join(err, req.Body.Close()); err == nil && len(body) > maxRequest {
		err = fmt.Errorf("a request has more than %d MB, which no batch accepts", maxRequest>>20)
	}
	if err != nil {
		return nil, err
	}
	var f fields
	if json.Unmarshal(body, &f) != nil || !to.provider.speaks(req.Header, f) { // another kind of server with the same path
		other := req.Clone(req.Context())
		other.Body = io.NopCloser(bytes.NewReader(body))
		return h.next.RoundTrip(other)
	}
	line, same, err := to.provider.line(f)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err // a cancelled run does not wait
	}
	a, ok, sent := h.ask(req.Context(), to, line, same)
	if !ok {
		return nil, budget.Costly(held{sent}, budget.Usage{})
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(a.body)),
		Body: io.NopCloser(bytes.NewReader(a.body)), Request: req,
	}, nil
}

// held is the error for a request that is held back. Sent means that a batch contains the request.
type held struct{ sent bool }

func (held) Error() string        { return "the request waits for a batch" }
func (held) FailureKind() string  { return string(kind.Waiting) }
func (held) Is(target error) bool { return target == kind.Waiting }
func (held) Retryable() bool      { return false }
func (h held) Sent() bool         { return h.sent }

// ask returns the answer to a request. If there is none yet, it stores the request and returns false; sent reports whether a
// batch already contains it. The argument same identifies the request at its place in the run; equal requests at the same place
// are distinguished by their order.
func (s *session) ask(ctx context.Context, to endpoint, line, same json.RawMessage) (_ answer, ok, sent bool) {
	body := stone.In(ctx)
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n%d\n%s\n%s\n", body.RunID(), body.Path(), record.Anew(ctx), to.url, same)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := string(sum.Sum(nil))
	fmt.Fprintln(sum, s.seen[first])
	s.seen[first]++
	key := base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
	a, ok := s.answers[key]
	if why := s.spent(key); !ok && why != "" {
		a, ok = refusal(http.StatusFailedDependency, "batch_ended", why), true
	}
	if ok {
		delete(s.answers, key) // if the answer is not recorded, it will be read again
		s.given[key] = true
		return a, true, true
	}
	amount, known := declared.Held[budget.Amount](ctx)
	s.asked[key] = &request{key, line, to, amount}
	account, back := budget.From(ctx), budget.Amount{Roundtrips: declared.Claimed[budget.Quote](ctx).Most.Roundtrips}
	if amount.Roundtrips = 0; known { // the step has received the answers
		account.Charge(amount)
		back.USD, back.Tokens = amount.USD, amount.Tokens
	}
	s.held = append(s.held, hold{account, back})
	return answer{}, false, s.batches[key] != nil
}

// groups divides the waiting requests into batches, within the limits of their providers.
func (s *session) groups() (all [][]*request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	type group struct {
		at     int // the index among all requests
		inputs int
		bytes  int
	}
	open := map[string]group{}
	for _, key := range slices.Sorted(maps.Keys(s.asked)) {
		r := s.asked[key]
		if s.batches[key] != nil {
			continue
		}
		most, size := r.to.provider.bounds()
		fewer := s.fewer(key)
		where := fmt.Sprint(r.to.url, "\n", r.to.provider.model(r.line), "\n", fewer)
		inputs := r.to.provider.inputs(r.line)
		g, ok := open[where]
		length := len(r.line) + 200 // includes the key
		if !ok || g.inputs+inputs > most || s.Most > 0 && len(all[g.at]) == s.Most || fewer > 0 && len(all[g.at]) == fewer || g.bytes+length > size {
			g = group{at: len(all)}
			all = append(all, nil)
		}
		all[g.at] = append(all[g.at], r)
		g.inputs, g.bytes = g.inputs+inputs, g.bytes+length
		open[where] = g
	}
	return all
}
