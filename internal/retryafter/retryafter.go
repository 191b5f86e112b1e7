// Package retryafter computes the delay before a retry, and parses the delay that a server requests.
package retryafter

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Most is the maximum delay that Read returns.
const Most = 24 * time.Hour

// Read returns the delay specified in a header: by Retry-After-Ms in milliseconds, or by Retry-After in seconds or as a date. It
// returns 0 for a missing or invalid header, and never more than Most.
func Read(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return seconds(ms / 1e3)
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return seconds(s)
	}
	if at, err := http.ParseTime(value); err == nil {
		return seconds(at.Sub(now).Seconds())
	}
	return 0
}

// ReadBody returns the delay specified by a RetryInfo in the JSON body of a Google API error. It returns 0 if there is none. The
// body may be a list with a single error.
func ReadBody(body []byte) time.Duration {
	var fault struct {
		Error struct {
			Details []struct {
				Delay string `json:"retryDelay"`
			} `json:"details"`
		} `json:"error"`
	}
	body = bytes.TrimSpace(body)
	body = bytes.TrimSuffix(bytes.TrimPrefix(body, []byte("[")), []byte("]"))
	if json.Unmarshal(body, &fault) != nil {
		return 0
	}
	for _, detail := range fault.Error.Details {
		if wait, err := time.ParseDuration(detail.Delay); err == nil {
			return seconds(wait.Seconds())
		}
	}
	return 0
}

// seconds converts seconds to a duration of at least 0. NaN is converted to 0.
func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, Most.Seconds()) * float64(time.Second)).Round(time.Millisecond)
}
