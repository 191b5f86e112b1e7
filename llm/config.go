package llm

import "time"

// Timeouts bound the phases of a request. Zero means the default, a negative
// value unlimited. A request that exceeds one fails with a *TimeoutError.
type Timeouts struct {
	Connect   time.Duration // to reach the server; default 10 s; ignored with a custom HTTP client
	FirstByte time.Duration // from sending the request to the first byte of the answer; default 5 min
	// Silence is the longest pause between two bytes of the answer; default 2 min. If only keep-alives such as pings
	// arrive, the limit is five times that.
	Silence time.Duration
	Total   time.Duration // the whole request, with retries, without waits for a Limiter; default 30 min
}

// WithDefaults returns t with zero values replaced by the defaults.
func (t Timeouts) WithDefaults() Timeouts {
	t.Connect = defaultTo(t.Connect, 10*time.Second)
	t.FirstByte = defaultTo(t.FirstByte, 5*time.Minute)
	t.Silence = defaultTo(t.Silence, 2*time.Minute)
	t.Total = defaultTo(t.Total, 30*time.Minute)
	return t
}

// Retry bounds the retries of a request that failed: with status 408, 409, 429 or 5xx, because the server could not be
// reached or was busy, or because its answer was cut short. If a part of the answer was passed on, a Restart delta
// voids it. The zero value means the defaults.
type Retry struct {
	Max     int           // further attempts; 0 means 3, negative none
	Wait    time.Duration // before the first retry, doubled for each further one; default 500 ms
	MaxWait time.Duration // longest wait; default 1 min; a pause of the server beyond it ends the request
}

// WithDefaults returns r with zero values replaced by the defaults.
func (r Retry) WithDefaults() Retry {
	r.Max = defaultTo(r.Max, 3)
	r.Wait = defaultTo(r.Wait, 500*time.Millisecond)
	r.MaxWait = defaultTo(r.MaxWait, time.Minute)
	return r
}

func defaultTo[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return max(v, 0)
}
