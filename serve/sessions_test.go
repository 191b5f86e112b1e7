package serve

import (
	"testing"
	"time"
)

func TestSessions(t *testing.T) {
	var s sessions
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	other := s.start("b", now)
	first := s.start("a", now)
	for i := range sessionsEach {
		s.start("a", now.Add(time.Duration(i+1)*time.Second))
	}
	if s.token(first, now) != "" || s.token(other, now) != "b" || len(s.by) != sessionsEach+1 {
		t.Errorf("one more ends the oldest of its token: %d sessions", len(s.by))
	}
	now = now.Add(sessionIdle)
	if s.token(other, now) != "b" || s.token(other, now.Add(sessionIdle)) != "b" || s.token(other, now.Add(2*sessionIdle+1)) != "" {
		t.Error("a session ends when it was not used")
	}
	last := s.start("c", now.Add(5*sessionIdle))
	if len(s.by) != 1 {
		t.Errorf("%d sessions that have ended are kept", len(s.by)-1)
	}
	s.end(last)
	if s.token(last, now) != "" || s.token("", now) != "" {
		t.Error("a session that was ended is valid")
	}
}
