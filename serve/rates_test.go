package serve

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// No minute has more requests of a caller than its rate, wherever it begins, and who waits as it is told may send.
func TestRates(t *testing.T) {
	for _, rate := range []int{1, 7, 60, 300} {
		var r rates
		who := Principal{Name: "a", PerMinute: &rate}
		now := time.Unix(1_800_000_000, 999_000_000)
		rng := rand.New(rand.NewPCG(1, uint64(rate)))
		var sent []time.Time
		for range 20 * rate {
			wait := r.take(who, now)
			if wait < 0 || wait > 61*time.Second {
				t.Fatalf("rate %d: wait %v", rate, wait)
			}
			if wait > 0 {
				now = now.Add(wait)
				if again := r.take(who, now); again > 0 {
					t.Fatalf("rate %d: %v after a wait of %v", rate, again, wait)
				}
			}
			sent = append(sent, now)
			if n := len(sent); n > rate && now.Sub(sent[n-1-rate]) < time.Minute {
				t.Fatalf("rate %d: %d requests within %v", rate, rate+1, now.Sub(sent[n-1-rate]))
			}
			switch rng.IntN(40) {
			case 0:
				now = now.Add(time.Duration(rng.IntN(200)) * time.Second) // a silence
			default:
				now = now.Add(time.Duration(rng.IntN(300)) * time.Millisecond)
			}
		}
	}
	none := 0
	if wait := (&rates{}).take(Principal{Name: "b", PerMinute: &none}, time.Now()); wait <= 0 {
		t.Error("a rate of nothing lets a request through")
	}
}

// Callers without number leave nothing behind.
func TestRatesForget(t *testing.T) {
	var r rates
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 10 * mostWindows {
		r.take(Principal{Name: fmt.Sprint(i), PerMinute: new(1)}, now.Add(time.Duration(i)*time.Second))
	}
	if n := len(r.by); n > mostWindows {
		t.Errorf("%d callers are remembered", n)
	}
}
