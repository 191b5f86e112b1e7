package call

// A Registry holds capabilities by their id, and what is known of how they do:
// which are down, how many of their invocations are under way.
type Registry struct{}
