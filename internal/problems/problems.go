// Package problems declares the problem types in responses of the HTTP interface, which are used in api.Problem.
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
