package call

// Counters count calls and attempts.
type Counters struct{}
