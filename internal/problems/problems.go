// Package problems names the types of the problems that the HTTP interface replies with, as api.Problem has them.
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
