package limit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A Store keeps what processes share of a rate. The journals over SQLite and PostgreSQL are Stores.
type Store interface {
	// ShareRate replaces the state that is stored under a name by the one that change makes of it, in
	// one transaction. Now is the same clock for all processes. The state of a new name is nil. Change may
	// be called again if the transaction is repeated.
	ShareRate(ctx context.Context, name string, change func(state []byte, now time.Time) []byte) error
}

// Share makes all processes that share a rate of the store under the name keep the Limits together. Their
// Limits must be equal. It does nothing for a Limiter without Limits. Another call replaces the store.
//
// A process takes a slice of the rate for about a second and spends it without asking the store again. It asks once
// or twice a second while it sends requests, and at most four times. A slice counts until a minute after its end, so the processes never start more than the
// limit within any minute, and use about 97 % of it. The slice of a process that died comes back with its
// minute, and its concurrent requests after 15 seconds. A refusal of the server that one process hears
// stops all within about a second.
func (l *Limiter) Share(s Store, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limits == (Limits{}) || s == nil {
		return
	}
	if l.share != nil && l.share.name == name {
		l.share.store, l.share.retry, l.share.why = s, time.Time{}, nil
		return
	}
	l.share = &share{Limiter: l, store: s, name: name, owner: rand.Text()[:12], back: map[int64]counts{}}
}

// window is the time in which limits count. A slice ends with a grain of the window.
const (
	window  = time.Minute
	grains  = 60
	leaseOf = 15 // grains until the concurrent requests of a dead process are free
)

// share is the part of a process in a shared rate. The lock of the Limiter guards it.
type share struct {
	*Limiter
	store  Store
	name   string
	owner  string
	window time.Duration // window if 0, for tests

	slice  counts // may be started
	key    int64  // the grain with whose end the slice ends
	until  time.Time
	slots  int // concurrent requests
	back   map[int64]counts
	recent counts    // started since the last ask
	said   time.Time // the pause that the store knows
	asking bool
	asked  time.Time
	retry  time.Time // no sooner
	others int       // processes that have asked lately
	why    error     // of the last ask
	report *time.Timer
}

// counts are requests and tokens.
type counts struct {
	Requests int `json:"r,omitempty"`
	Tokens   int `json:"t,omitempty"`
}

func (c counts) plus(d counts) counts { return counts{c.Requests + d.Requests, c.Tokens + d.Tokens} }

func (s *share) grain() time.Duration {
	if s.window > 0 {
		return s.window / grains
	}
	return window / grains
}

// covers reports whether the slice pays for a request.
func (s *share) covers(tokens int, now time.Time) bool {
	l := s.limits
	rate := l.RequestsPerMinute > 0 || l.TokensPerMinute > 0
	switch {
	case l.Concurrency > 0 && s.running >= s.slots:
	case rate && !now.Before(s.until):
	case l.RequestsPerMinute > 0 && s.slice.Requests < 1:
	case l.TokensPerMinute > 0 && s.slice.Tokens < tokens:
	default:
		return true
	}
	return false
}

// fromNow is the key of what counts from the next exchange on.
const fromNow = 0

// start takes a request from the slice.
func (s *share) start(p *Place) {
	p.grain = s.key
	s.slice = s.slice.plus(counts{-1, -p.tokens})
	s.recent = s.recent.plus(counts{1, p.tokens})
}

// left gives back what a request did not use, or notes what it used beyond.
func (s *share) left(p *Place, tokens int) {
	if more := tokens - p.tokens; s.limits.TokensPerMinute > 0 && tokens >= 0 && more != 0 {
		key := p.grain
		if more > 0 {
			key = fromNow
		}
		s.back[key] = s.back[key].plus(counts{0, more})
	}
	if s.limits.Concurrency > 0 || len(s.back) > 0 {
		s.tell(s.grain())
	}
}

// tell asks again after a while, so that others get what this process does not need.
func (s *share) tell(after time.Duration) {
	if s.report == nil {
		s.report = time.AfterFunc(after, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.report = nil
			s.ask()
		})
	}
}

// wait returns when to ask for the next request.
func (s *share) wait(now time.Time) time.Time {
	if s.asking {
		return time.Time{}
	}
	return latest(s.retry, s.asked.Add(s.grain()/4), now)
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// ask exchanges what this process has for what it needs, in the background.
func (s *share) ask() {
	if s.asking {
		return
	}
	last := s.asked
	s.asking, s.asked = true, time.Now()
	q, store := s.question(s.asked.Sub(last)), s.store
	go func() {
		var a answer
		ctx, cancel := context.WithTimeout(context.Background(), 30*s.grain()+time.Second)
		defer cancel()
		err := store.ShareRate(ctx, s.name, func(state []byte, now time.Time) []byte {
			state, a = exchange(state, q, now, s.grain())
			return state
		})
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.heard(q, answer{}, err) // the store may still set a
		} else {
			s.heard(q, a, nil)
		}
		s.advance()
	}()
}

// question returns what the process gives back, and what it needs: for the requests that wait, and for as many as
// started lately, so that not each of them has to ask. The rest of its slice is given back.
func (s *share) question(since time.Duration) question {
	if s.slice != (counts{}) {
		s.back[s.key] = s.back[s.key].plus(counts{-max(s.slice.Requests, 0), -max(s.slice.Tokens, 0)})
	}
	q := question{Limits: s.limits, Owner: s.owner, Running: s.running, Back: s.back}
	s.slice, s.back = counts{}, map[int64]counts{}
	part := min(float64(s.grain())/float64(max(since, 1)), 1)
	q.Want = counts{int(float64(s.recent.Requests) * part), int(float64(s.recent.Tokens) * part)}
	s.recent = counts{}
	for _, queue := range s.queues {
		for _, w := range queue {
			q.Want, q.Queued = q.Want.plus(counts{1, w.tokens}), q.Queued+1
		}
	}
	if w := s.next(); w != nil {
		q.First, q.Rank = w.tokens, w.rank.among()
	}
	if pause := time.Until(s.server.until); pause > 0 && s.server.until.After(s.said) {
		q.Pause, q.Reason, s.said = pause, s.server.reason, s.server.until
	}
	return q
}

// heard takes over what the store has answered.
func (s *share) heard(q question, a answer, err error) {
	s.asking = false
	if s.why = err; err != nil { // it may have been stored: what is given back twice would exceed the limit
		s.retry, s.said = time.Now().Add(2*s.grain()), time.Time{}
		return
	}
	s.slice, s.key, s.until = a.Slice, a.Key, s.asked.Add(a.Lasts)
	s.slots, s.others = max(a.Slots, s.running), a.Others
	s.retry = s.asked.Add(min(a.Retry, s.grain()))
	if a.Pause > 0 {
		if until := s.asked.Add(a.Pause); until.After(s.server.until.Add(s.grain() / 4)) {
			s.server.stop(until, a.Reason, s.asked)
			s.said = s.server.until
		}
	}
	if s.limits.Concurrency > 0 && s.running > 0 {
		s.tell(s.grain() * leaseOf / 3)
	}
}

// reason says why a request waits for the share.
func (s *share) reason() string {
	switch l := s.limits; {
	case s.why != nil:
		return fmt.Sprintf("the rate that processes share cannot be read: %v", s.why)
	case l.Concurrency > 0 && s.running >= s.slots:
		return fmt.Sprintf("at most %d requests at once, of %d processes", l.Concurrency, s.others+1)
	case l.RequestsPerMinute > 0 && s.slice.Requests < 1:
		return fmt.Sprintf("at most %d requests a minute, of %d processes", l.RequestsPerMinute, s.others+1)
	}
	return fmt.Sprintf("at most %d tokens a minute, of %d processes", s.limits.TokensPerMinute, s.others+1)
}

// among is the rank of a request among the requests of other processes: the priority, above all others if a person waits.
func (r Rank) among() int {
	const above = 1 << 29 // beyond any sensible priority
	if r.Interactive {
		return min(r.Priority, above) + above
	}
	return min(r.Priority, above-1)
}

// A question is what a process tells and asks the store.
type question struct {
	Limits  Limits
	Owner   string
	Running int
	Want    counts
	Queued  int // requests that wait
	First   int // tokens of the first of them
	Rank    int // see Rank.among
	Back    map[int64]counts
	Pause   time.Duration // that the server demands; 0 for none that is new
	Reason  string
}

// An answer is what the process gets.
type answer struct {
	Slice  counts
	Key    int64
	Lasts  time.Duration
	Slots  int
	Others int
	Retry  time.Duration // when there may be more, if the slice does not pay for the first request
	Pause  time.Duration
	Reason string
}

// state is what is stored. Times are nanoseconds of Unix time.
type state struct {
	Slices map[int64]counts  `json:"slices,omitempty"` // by the grain with which they end
	Owners map[string]tenant `json:"owners,omitempty"`
	Pause  int64             `json:"pause,omitempty"`
	Said   int64             `json:"said,omitempty"` // when the pause was noted
	Reason string            `json:"reason,omitempty"`
}

// A tenant is a process that has asked lately.
type tenant struct {
	Slots int   `json:"slots,omitempty"`
	Since int64 `json:"since,omitempty"` // it waits for room for its first request
	First int   `json:"first,omitempty"` // tokens of that
	Rank  int   `json:"rank,omitempty"`  // see Rank.among
	Until int64 `json:"until"`
}

// exchange computes the next state, and the answer to a process.
func exchange(old []byte, q question, when time.Time, grain time.Duration) ([]byte, answer) {
	var s state
	_ = json.Unmarshal(old, &s) // a rate whose state cannot be read begins anew
	at, g := when.UnixNano(), int64(grain)
	present := at / g
	if s.Slices == nil {
		s.Slices = map[int64]counts{}
	}
	if s.Owners == nil {
		s.Owners = map[string]tenant{}
	}
	a := answer{Key: (at+g/4)/g + 1}
	a.Lasts = time.Duration(a.Key*g - at)
	s.rewind(a.Key, at, g)
	for key, back := range q.Back {
		if key == fromNow {
			key = a.Key
		} else if _, ok := s.Slices[key]; !ok {
			continue // its minute is over
		}
		c := s.Slices[key].plus(back)
		s.Slices[key] = counts{max(c.Requests, 0), max(c.Tokens, 0)}
	}
	used := counts{}
	for key, c := range s.Slices {
		if key+grains <= present || c == (counts{}) {
			delete(s.Slices, key)
			continue
		}
		used = used.plus(c)
	}
	others, short, me := 0, 0, s.Owners[q.Owner]
	for owner, t := range s.Owners {
		if t.Until <= at {
			delete(s.Owners, owner)
			continue
		} else if owner == q.Owner {
			continue
		}
		a.Others++
		others += t.Slots
		if t.Since > 0 {
			short++
		}
		if t.before(me, q.Rank, at, g) {
			used = used.plus(counts{1, t.First})
		}
	}
	if pause := at + int64(q.Pause); q.Pause > 0 && pause > s.Pause {
		s.Pause, s.Said, s.Reason = pause, at, q.Reason
	}
	me.Slots, me.First, me.Rank, me.Until = slots(q, others, short), q.First, q.Rank, at+leaseOf*g
	served := q.Queued == 0
	if s.Pause > at {
		a.Pause, a.Reason, a.Retry = time.Duration(s.Pause-at), s.Reason, time.Duration(s.Pause-at)
	} else if q.Want.Requests > 0 {
		a.Slice, a.Retry = s.cut(q, used, short+1, present, at, g)
		s.Slices[a.Key] = s.Slices[a.Key].plus(a.Slice)
		served = served || a.Retry == 0 && (q.Limits.Concurrency <= 0 || me.Slots > q.Running)
	}
	if !served && a.Retry == 0 {
		a.Retry = grain / 2 // others may leave at any time
	}
	if served {
		me.Since = 0
	} else if me.Since == 0 {
		me.Since = at
	}
	a.Slots, s.Owners[q.Owner] = me.Slots, me
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // it has only numbers and text
	}
	return text, a
}

// rewind moves what is later than a grain or a lease can be to the present: the clock was set back, and nobody must
// wait until it is there again.
func (s *state) rewind(last, at, g int64) {
	for key, c := range s.Slices {
		if key > last {
			delete(s.Slices, key)
			s.Slices[last] = s.Slices[last].plus(c)
		}
	}
	for owner, t := range s.Owners {
		t.Since, t.Until = min(t.Since, at), min(t.Until, at+leaseOf*g)
		s.Owners[owner] = t
	}
	if ahead := s.Said - at; ahead > 0 {
		s.Pause, s.Said = s.Pause-ahead, at
	}
}

// before reports whether a process goes before another one whose first request has a priority: it waits, with a
// higher priority or longer. After leaseOf grains, how long it waits counts alone.
func (t tenant) before(other tenant, rank int, at, g int64) bool {
	if t.Since == 0 {
		return false
	}
	if old := at - leaseOf*g; t.Rank != rank && t.Since > old && (other.Since == 0 || other.Since > old) {
		return t.Rank > rank
	}
	return other.Since == 0 || t.Since < other.Since
}

// cut returns the slice of a process, or when there is room for its first request. Processes that
// need more share the room.
func (s *state) cut(q question, used counts, sharers int, present, at, g int64) (counts, time.Duration) {
	l := q.Limits
	portion := func(limit, used, first, want int) (n int, ok bool) {
		room := limit - used
		if first > limit { // it has a minute for itself
			return first, used == 0
		}
		return min(want, max(first, (room+sharers-1)/sharers)), room >= first
	}
	c, fits := q.Want, true
	if l.RequestsPerMinute > 0 {
		c.Requests, fits = portion(l.RequestsPerMinute, used.Requests, 1, q.Want.Requests)
	}
	if l.TokensPerMinute > 0 && fits {
		c.Tokens, fits = portion(l.TokensPerMinute, used.Tokens, q.First, q.Want.Tokens)
	}
	if fits {
		return c, 0
	}
	next := present + grains // the oldest slice is forgotten first
	for key := range s.Slices {
		next = min(next, key+grains)
	}
	return counts{}, time.Duration(next*g - at)
}

// slots returns how many requests of a process may run at once.
func slots(q question, others, short int) int {
	most := q.Limits.Concurrency
	if most <= 0 {
		return 0
	}
	fair := most - others
	if short > 0 {
		fair = min(fair, max(1, most/(short+1)))
	}
	return max(min(q.Running+q.Want.Requests, fair), min(q.Running, most), 0)
}
