package limit

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestMinuteIsBounded counts what is remembered of many requests.
func TestMinuteIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Limits{RequestsPerMinute: 1_000_000, TokensPerMinute: 1_000_000_000})
		most := 0
		for range 70_000 {
			p, err := l.Enter(t.Context(), Request{Tokens: 10})
			if err != nil {
				t.Fatal(err)
			}
			p.Leave(20)
			most = max(most, len(l.minute.spent))
			time.Sleep(time.Millisecond)
		}
		if most > 241 || l.running != 0 {
			t.Errorf("%d counts are kept, and %d requests run", most, l.running)
		}
		tokens := 0
		for _, s := range l.minute.spent {
			tokens += s.tokens
		}
		if tokens < 59_000*20 || tokens > 61_000*20 {
			t.Errorf("%d tokens within the last minute, want about 1,200,000", tokens)
		}
	})
}
