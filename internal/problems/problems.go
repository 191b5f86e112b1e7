// Package problems declares the problem types that the HTTP interface returns in an api.Problem.
package problems

const (
	Invalid     = "invalid"
	NotFound    = "not-found"
	Conflict    = "conflict"
	Refused     = "refused"
	Forbidden   = "forbidden"
	Unknown     = "unauthorized"
	TooMuch     = "too-many"
	Unavailable = "unavailable"
	Internal    = "internal"
	BadPath     = "no-such-path"
	NoPipeline  = "no-such-pipeline"
	Unanswered  = "unanswered"
)
