package limit

import "time"

const (
	// maxPause is the longest time for which a server can stop all requests.
	maxPause = 24 * time.Hour
	// slowAnswer is the time after which a request counts as accepted: refusals are faster than answers.
	slowAnswer = 5 * time.Second
)

// An Answer is a server's statement about its limits. The zero value states nothing.
type Answer struct {
	// Refused says that the request was refused because of its rate. All requests wait for
	// Pause.
	Refused bool
	Pause   time.Duration
	// Requests and Tokens are the amounts that the server accepts until it renews them.
	Requests, Tokens Quota
}

// A Quota is the remainder of a limit until a time. It is unknown if Until is zero.
type Quota struct {
	Left  int
	Until time.Time
}

// server keeps a server's statement about its limits.
type server struct {
	until            time.Time // nothing is sent before
	reason           string    // of until
	requests, tokens quota     // less the requests that it may not include
	careful          bool      // after a pause, until a request is accepted
	probe            *Place    // goes first while careful
	others           time.Time // when others follow even without an answer to the probe

	sent       uint64 // numbers the requests
	latest     uint64 // the number of the latest request whose answer was heard
	unanswered struct{ requests, tokens int }
}

// A quota remembers whether it made a request wait.
type quota struct {
	Quota
	blocked bool
}

// heard notes the answer to the request of a place. The answer to the latest request counts, less requests that the server may
// not have counted yet.
func (s *server) heard(p *Place, a Answer, now time.Time) {
	s.answered(p)
	if p == s.probe {
		s.probe, s.careful = nil, false
	}
	for _, q := range []struct {
		of   *quota
		said Quota
		sent int
		name string
	}{{&s.requests, a.Requests, s.unanswered.requests, "requests"}, {&s.tokens, a.Tokens, s.unanswered.tokens, "tokens"}} {
		if q.said.Until.IsZero() {
			continue
		}
		if p.number >= s.latest {
			*q.of = quota{Quota: Quota{q.said.Left - q.sent, q.said.Until}}
		}
		if q.said.Left <= 0 {
			s.stop(q.said.Until, "the server accepts no more "+q.name, now)
		}
	}
	s.latest = max(s.latest, p.number)
	if a.Refused {
		s.stop(now.Add(a.Pause), "the server refused a request because of its rate", now)
	}
}

// stop lets no request start before a time, and then only one at first.
func (s *server) stop(until time.Time, reason string, now time.Time) {
	if latest := now.Add(maxPause); until.After(latest) {
		until = latest
	}
	s.careful = true
	if until.After(s.until) {
		s.until, s.reason = until, reason
	}
}

// started notes that a request is sent.
func (s *server) started(p *Place, now time.Time) {
	if s.careful {
		s.probe, s.others = p, now.Add(slowAnswer)
	}
	s.sent++
	p.number = s.sent
	s.requests.Left--
	s.tokens.Left -= p.tokens
	s.unanswered.requests++
	s.unanswered.tokens += p.tokens
}

// answered notes that a request has an answer or never will.
func (s *server) answered(p *Place) {
	if p.answered {
		return
	}
	p.answered = true
	s.unanswered.requests--
	s.unanswered.tokens -= p.tokens
}

// mayStart returns the earliest start of a request. After a quota that made requests wait, one request goes first, because the
// new quota is unknown.
func (s *server) mayStart(tokens int, now time.Time, used view) (time.Time, string) {
	at, reason := s.until, s.reason
	if s.probe != nil && !s.others.After(now) {
		s.probe, s.careful = nil, false
	}
	if s.probe != nil && s.others.After(at) {
		at, reason = s.others, "one request tries whether the server accepts requests again"
	}
	for _, q := range []struct {
		of     *quota
		need   int
		back   int // may not have been counted by the server
		reason string
	}{{&s.requests, 1, s.unanswered.requests, "the server accepts no more requests"}, {&s.tokens, tokens, s.unanswered.tokens, "the server accepts fewer tokens than the request has"}} {
		switch {
		case !q.of.Until.After(now): // it was renewed
			s.careful = s.careful || q.of.blocked
			q.of.blocked = false
		case used == sure && q.of.Left+q.back >= q.need:
		case q.of.Left < q.need:
			q.of.blocked = true
			if q.of.Until.After(at) {
				at, reason = q.of.Until, q.reason
			}
		}
	}
	return at, reason
}
