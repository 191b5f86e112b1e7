package serve

import "context"

// Send starts attempts at the notices that are due, as the server does at each scan.
func (s *Server) Send(ctx context.Context) error { return s.outbox.send(ctx) }

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
