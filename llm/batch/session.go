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

// A session has the requests and the batches of a run while Run works.
type session struct {
	Config
	id    string // of the run
	notes owed.Store

	mu      sync.Mutex
	seen    map[string]int      // how often a request was made in this visit
	asked   map[string]*request // in this visit, without an answer, by key
	given   map[string]bool     // answered in this visit
	held    []hold              // their estimated costs
	answers map[string]answer   // by key, of batches that have ended
	batches map[string]*made    // by key, the newest that has it
	lost    map[string][]*made  // by key, those that had no answer
	made    []*made             // in their order
}

// A request is held back.
type request struct {
	key  string
	line json.RawMessage // its body, without what makes its answer a stream
	to   endpoint
	cost budget.Amount // estimated
}

// An answer is the status and the body that a request gets.
type answer struct {
	status int
	body   json.RawMessage
}

// A hold is the amount that an account gets back when a visit is over. A request that waits has made no round trip.
type hold struct {
	account *budget.Account
	amount  budget.Amount
}

// begin forgets the requests of the last visit.
func (s *session) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.asked, s.given = map[string]int{}, map[string]*request{}, map[string]bool{}
}

// release refunds the amounts held during a visit. The next visit holds them again for the requests that it makes.
func (s *session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.held {
		h.account.Refund(h.amount)
	}
	s.held = nil
}

// waits reports whether the run asked for anything that a batch has to answer.
func (s *session) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked) > 0
}

// over returns a transport that holds requests to models back.
func (s *session) over(next http.RoundTripper) http.RoundTripper { return holding{s, next} }

type holding struct {
	*session
	next http.RoundTripper
}

// maxRequest is the largest body of a request in bytes.
const maxRequest = 200 << 20

// RoundTrip answers a request from a batch that has ended, or holds it back.
func (h holding) RoundTrip(req *http.Request) (*http.Response, error) {
	to, ok := endpointOf(req, h.next)
	if !ok || !transport.Batched(req.Context()) {
		return h.next.RoundTrip(req)
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRequest+1))
	if err = errors.Join(err, req.Body.Close()); err == nil && len(body) > maxRequest {
		err = fmt.Errorf("a request has more than %d MB, which no batch takes", maxRequest>>20)
	}
	if err != nil {
		return nil, err
	}
	var f fields
	if json.Unmarshal(body, &f) != nil || !to.provider.speaks(req.Header, f) { // another server has such a path, too
		other := req.Clone(req.Context())
		other.Body = io.NopCloser(bytes.NewReader(body))
		return h.next.RoundTrip(other)
	}
	line, same, err := to.provider.line(f)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err // a canceled run does not wait
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

// held is the error of a request that is held back. Sent says that a batch has it.
type held struct{ sent bool }

func (held) Error() string        { return "the request waits for a batch" }
func (held) FailureKind() string  { return string(kind.Waiting) }
func (held) Is(target error) bool { return target == kind.Waiting }
func (held) Retryable() bool      { return false }
func (h held) Sent() bool         { return h.sent }

// ask returns the answer of a request, or notes that it is asked for. Same is what identifies the request at its
// place in the run. Equal ones there are told apart by their order. Sent says that a batch has the request.
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
		delete(s.answers, key) // if it is not recorded, it is read again
		s.given[key] = true
		return a, true, true
	}
	amount, known := declared.Held[budget.Amount](ctx)
	s.asked[key] = &request{key, line, to, amount}
	account, back := budget.From(ctx), budget.Amount{Roundtrips: declared.Claimed[budget.Quote](ctx).Most.Roundtrips}
	if amount.Roundtrips = 0; known { // the step has taken them
		account.Charge(amount)
		back.USD, back.Tokens = amount.USD, amount.Tokens
	}
	s.held = append(s.held, hold{account, back})
	return answer{}, false, s.batches[key] != nil
}

// groups makes the batches of the requests that wait, within the bounds of their providers.
func (s *session) groups() (all [][]*request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	type group struct {
		at     int // in all
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
		length := len(r.line) + 200 // with its key
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
