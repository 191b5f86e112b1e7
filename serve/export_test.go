package serve

// Patterns returns the patterns of all routes that ask who the caller is.
func (s *Server) Patterns() (all []string) {
	for _, r := range s.table() {
		all = append(all, r.pattern)
	}
	return all
}
