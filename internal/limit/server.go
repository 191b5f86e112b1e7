package limit

import "time"

const (
	// maxPause is the longest pause of all requests that a server can cause.
	maxPause = 24 * time.Hour
	// slowAnswer is the time after which a request without a response counts as accepted, because refusals arrive faster than
	// answers.
	slowAnswer = 5 * time.Second
)

// An Answer holds the information about limits in a server's response. The zero Answer contains no information.
type Answer struct {
	// Refused means that the request was refused because the rate was too high. All requests then wait for Pause.
	Refused bool
	Pause   time.Duration
	// Requests and Tokens are the remaining amounts of the server's quotas.
	Requests, Tokens Quota
}

// A Quota is the amount of a limit that is left until the limit is renewed. It is unknown if Until is zero.
type Quota struct {
	Left  int
	Until time.Time
}

// server records the limits that a server has reported.
type server struct {
	until            time.Time // no request is sent before this time
	reason           string    // reason for until
	requests, tokens quota     // remaining quotas, reduced by requests that the server may not have counted yet
	careful          bool      // true after a pause, until a request has been accepted
	probe            *Place    // the single request that is sent while careful
	others           time.Time // when other requests follow even if the probe has no response yet

	sent       uint64 // number of the last request that was sent
	latest     uint64 // highest number of a request whose response has been recorded
	unanswered struct{ requests, tokens int }
}

// A quota is a Quota that also records whether a request had to wait for it to be renewed.
type quota struct {
	Quota
	blocked bool
}

// heard records the response to a place's request. Only the response to the latest request counts. Its quotas are reduced by the
// requests that the server may not have counted yet.
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

// stop prevents requests from starting before until. After that, only one request starts at first.
func (s *server) stop(until time.Time, reason string, now time.Time) {
	if latest := now.Add(maxPause); until.After(latest) {
		until = latest
	}
	s.careful = true
	if until.After(s.until) {
		s.until, s.reason = until, reason
	}
}

// started records that a request is being sent.
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

// answered records that a request has a response, or will never have one.
func (s *server) answered(p *Place) {
	if p.answered {
		return
	}
	p.answered = true
	s.unanswered.requests--
	s.unanswered.tokens -= p.tokens
}

// mayStart returns the earliest time at which a request may start. If requests had to wait for a quota to be renewed, a single
// request is sent first, because the new quota is unknown.
func (s *server) mayStart(tokens int, now time.Time, used view) (time.Time, string) {
	at, reason := s.until, s.reason
	if s.probe != nil && !s.others.After(now) {
		s.probe, s.careful = nil, false
	}
	if s.probe != nil && s.others.After(at) {
		at, reason = s.others, "one request is testing whether the server accepts requests again"
	}
	for _, q := range []struct {
		of     *quota
		need   int
		back   int // amount that the server may not have counted yet
		reason string
	}{{&s.requests, 1, s.unanswered.requests, "the server accepts no more requests"}, {&s.tokens, tokens, s.unanswered.tokens, "the server accepts fewer tokens than the request has"}} {
		switch {
		case !q.of.Until.After(now): // the quota has been renewed
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
