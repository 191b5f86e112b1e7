package wire

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/retryafter"
	"github.com/stonelayer/stone/llm"
)

// quotaOf reads the server's limits from the headers of an answer. Gemini sends none.
//
// OpenAI and compatible servers send x-ratelimit-remaining-requests and -reset-requests, and the same for tokens, with a duration
// such as "6m0s" until the limit is fully restored (OpenAI's page "Rate limits"); Azure sends seconds, and -1 for quantities that
// it does not limit. Anthropic sends anthropic-ratelimit-requests-remaining and -reset, and the same for tokens, input-tokens and
// output-tokens, with the time in RFC 3339 (Anthropic's page "Rate limits").
func quotaOf(h http.Header, now time.Time) (a limit.Answer) {
	a.Requests = fewest(h, now, [2]string{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
		[2]string{"Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"})
	a.Tokens = fewest(h, now, [2]string{"X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
		[2]string{"Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
		[2]string{"Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset"},
		[2]string{"Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset"})
	return a
}

// fewest returns the quota with the smallest remaining amount. Each pair names the headers of a remaining amount and of its
// renewal.
func fewest(h http.Header, now time.Time, pairs ...[2]string) (least limit.Quota) {
	for _, pair := range pairs {
		left, err := strconv.Atoi(h.Get(pair[0]))
		until := renewal(h.Get(pair[1]), now)
		if err != nil || left < 0 || !until.After(now) {
			continue
		}
		if q := (limit.Quota{Left: left, Until: until}); least.Until.IsZero() || q.Left < least.Left ||
			q.Left == least.Left && q.Until.After(least.Until) {
			least = q
		}
	}
	return least
}

// renewal reads a duration, a number of seconds, or a time in RFC 3339. It returns the zero time for
// anything else.
func renewal(text string, now time.Time) time.Time {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at
	}
	wait, err := time.ParseDuration(text)
	if seconds, isNumber := strconv.ParseFloat(text, 64); isNumber == nil {
		wait, err = time.Duration(min(seconds, retryafter.Most.Seconds())*float64(time.Second)), nil
	}
	if err != nil {
		return time.Time{}
	}
	return now.Add(min(wait, retryafter.Most))
}

// refused reports whether the server rejected a request because of a rate limit, or requested a pause.
func refused(err error) bool {
	if e, ok := errors.AsType[*llm.HTTPError](err); ok {
		return e.Status == http.StatusTooManyRequests || e.Status >= 500 && e.RetryAfter > 0
	}
	e, ok := errors.AsType[*llm.ProviderError](err)
	return ok && (e.Code == "429" || e.Code == "rate_limit_exceeded" || e.Type == "rate_limit_exceeded" || e.Type == "rate_limit_error")
}
