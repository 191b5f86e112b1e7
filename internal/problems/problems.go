// Package problems names the problem types in replies of the HTTP interface, as used in api.Problem.
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
