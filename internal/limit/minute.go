package limit

import "time"

// minute counts the requests that started within the last minute. (A token bucket would admit nearly twice as many in the first
// minute.) Its size is limited, because requests that start within grain of each other share an entry.
type minute struct {
	spent []*spent // oldest first
}

// grain is the precision: a request stops counting at most this long after its minute has ended.
const grain = 250 * time.Millisecond

// spent is an entry that counts the requests that started at about the same time.
type spent struct {
	from, to         time.Time
	requests, tokens int
	reserved         int // part of tokens that is reserved for running requests
}

// add counts a request.
func (m *minute) add(tokens int, now time.Time) *spent {
	s := m.at(now)
	s.requests++
	s.tokens += tokens
	s.reserved += tokens
	return s
}

// at returns the entry for requests that start at the time now.
func (m *minute) at(now time.Time) *spent {
	m.forget(now)
	if n := len(m.spent); n > 0 && now.Sub(m.spent[n-1].from) < grain {
		m.spent[n-1].to = now
		return m.spent[n-1]
	}
	s := &spent{from: now, to: now}
	m.spent = append(m.spent, s)
	return s
}

// forget drops entries older than a minute.
func (m *minute) forget(now time.Time) {
	n := 0
	for n < len(m.spent) && !m.spent[n].to.Add(time.Minute).After(now) {
		n++
	}
	m.spent = append(m.spent[:0], m.spent[n:]...)
}

// settle replaces a place's estimate with the actual number of tokens. A negative number keeps the estimate. An unused part of the
// reservation is returned to the entry in which the request started; an excess is counted from now on.
func (m *minute) settle(p *Place, tokens int, now time.Time) {
	if p.spent == nil {
		return
	}
	p.spent.reserved -= p.tokens
	switch {
	case tokens < 0:
	case tokens <= p.tokens:
		p.spent.tokens -= p.tokens - tokens
	default:
		m.at(now).tokens += tokens - p.tokens
	}
}

// room returns the time at which the count for the last minute will have fallen to most or less.
func (m *minute) room(now time.Time, most int, count func(*spent) int) time.Time {
	m.forget(now)
	sum := 0
	for _, s := range m.spent {
		sum += count(s)
	}
	at := now
	for _, s := range m.spent {
		if sum <= most {
			break
		}
		sum -= count(s)
		at = s.to.Add(time.Minute)
	}
	return at
}
