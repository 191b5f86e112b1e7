package serve

import (
	"context"
	"time"
)

// FindUnsent searches the journal once, as the server does at its start and later.
func (s *Server) FindUnsent(ctx context.Context, since time.Time) error {
	return s.findUnsent(ctx, since)
}

// SendAgain retries the notices that are due, as the server does at each scan.
func (s *Server) SendAgain(ctx context.Context) { s.sendAgain(ctx) }

// Unsent returns the number of notices that wait for their next attempt.
func (s *Server) Unsent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unsent)
}

// Patterns returns the patterns of all routes that ask who the caller is.
func (s *Server) Patterns() (all []string) {
	for _, r := range s.table() {
		all = append(all, r.pattern)
	}
	return all
}

// Watched returns the numbers of lists that are read for clients, and of those clients.
func (s *Server) Watched() (lists, clients int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.lists {
		clients += w.clients
	}
	return len(s.lists), clients
}
