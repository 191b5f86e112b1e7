package cli

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// age is the value of a flag that sets a duration, which may be given in days.
type age time.Duration

func (a *age) Type() string { return "AGE" }

func (a *age) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

func (a *age) Set(s string) error {
	d, err := time.ParseDuration(s)
	if days, found := strings.CutSuffix(s, "d"); found {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		d = time.Duration(n * float64(day))
	}
	if err != nil || d <= 0 {
		return errors.New("want an age such as 30d, 12h or 90m" + meantTime(s, "d"))
	}
	*a = age(d)
	return nil
}

// since is the value of a flag that sets a time, given as a time, a day or an age.
type since time.Time

func (t *since) Type() string { return "TIME" }

func (t *since) String() string {
	if time.Time(*t).IsZero() {
		return ""
	}
	return time.Time(*t).Format(time.RFC3339)
}

func (t *since) Set(s string) error {
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", time.DateTime} {
		if at, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			*t = since(at)
			return nil
		}
	}
	var a age
	if a.Set(s) != nil {
		return errors.New("want a day such as 2026-11-28, a time such as 2026-11-28T15:04, or an age such as 7d, 12h or 90m" + meantTime(s, "d"))
	}
	*t = since(time.Now().Add(-time.Duration(a)))
	return nil
}

const day = 24 * time.Hour

// units lists units of time by prefixes of the names that people use for them. Longer prefixes come first.
var units = []struct {
	name string
	of   time.Duration
}{{"mo", 30 * day}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", day}, {"w", 7 * day}, {"y", 365 * day}}

var inWords = regexp.MustCompile(`^([1-9][0-9]{0,3}) *([a-z]*)( ago)?$`)

// meantTime returns a suggestion for a string that is not a valid duration, such as "2 hours". A bare number gets the given unit.
// Days are converted to hours unless the unit is "d".
func meantTime(s, unit string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if s == "yesterday" {
		s = "1 day"
	}
	words := inWords.FindStringSubmatch(s)
	if words == nil {
		return ""
	}
	n, _ := strconv.Atoi(words[1]) // cannot fail: it consists of digits
	for _, u := range units {
		switch {
		case !strings.HasPrefix(cmp.Or(words[2], unit), u.name):
			continue
		case u.of >= day && unit == "d":
			return fmt.Sprintf(": did you mean %dd?", n*int(u.of/day))
		case u.of >= day:
			return fmt.Sprintf(": did you mean %dh?", n*int(u.of/time.Hour))
		}
		return fmt.Sprintf(": did you mean %d%s?", n, u.name)
	}
	return ""
}
