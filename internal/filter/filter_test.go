package filter

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestFilter(t *testing.T) {
	now := time.Date(2026, 3, 5, 12, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"":                                "",
		"state:failed":                    "state=failed",
		"state:failed,refused":            "state=failed&state=refused",
		"state:failed state:done":         "state=failed&state=done",
		"pipeline:x usd>1":                "min-usd=1&pipeline=x",
		"usd>=0.5":                        "min-usd=0.5",
		"usd:0.5":                         "min-usd=0.5",
		"label:team=a=b label:x=":         "label.team=a%3Db&label.x=",
		"label.env=prod":                  "label.env=prod",
		`pipeline:"two words"`:            "pipeline=two+words",
		"since:1d":                        "since=2026-03-04T12%3A30%3A00Z",
		"since:today until:today":         "since=2026-03-05T00%3A00%3A00Z&until=2026-03-06T00%3A00%3A00Z",
		"until:2026-03-05T10:00:00.25Z":   "until=2026-03-05T10%3A00%3A00.25Z",
		"since:2026-02-28T23:00:00+01:00": "since=2026-02-28T22%3A00%3A00Z",
		`rate "limit: 5"`:                 "text=rate+limit%3A+5",
		`"a \" b"`:                        "text=a+%22+b",
		"429":                             "text=429",
	} {
		f, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := f.Values(now)
		if err != nil || got.Encode() != want {
			t.Errorf("%s: got %q, %v, want %q", text, got.Encode(), err, want)
		}
		again, err := Parse(f.String()) // what a page shows can be sent again
		if err != nil || again.String() != f.String() {
			t.Errorf("%s: written as %q it is read as %q, %v", text, f, again, err)
		}
	}
	for text, want := range map[string]string{
		"stat:failed":               "did you mean state?",
		"state:faild":               `unknown state "faild"`,
		`pipeline:"x`:               "quotes that are not closed",
		`"x`:                        "has an unclosed quote",
		"pipeline: x":               "no value after pipeline:",
		"label:team":                "want label:NAME=VALUE",
		"usd>much":                  "not an amount of USD",
		"usd>NaN":                   "not an amount of USD",
		"usd>Inf":                   "not an amount of USD",
		"since:yesterday":           "want an age such as 30m",
		"since:99999999999999999d":  "want an age",
		strings.Repeat("a ", 1000):  "at most 1000",
		"since:1d since:2026-13-01": "want an age",
	} {
		f, err := Parse(text)
		if err == nil {
			_, err = f.Values(now)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want %q", text, err, want)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(`state:failed "a b" usd>1`)
	f.Add(`a"b :c \`)
	f.Fuzz(func(t *testing.T, text string) {
		read, err := Parse(text)
		if err != nil {
			return
		}
		at, err := url.Parse(read.URL())
		if err != nil {
			t.Fatal(err)
		}
		written := at.Query().Get("q")
		if len(written) > 1000 { // quotes make it longer than what can be read
			return
		}
		again, err := Parse(written)
		if err != nil || len(again) != len(read) {
			t.Fatalf("%q is written as %q and read as %q: %v", text, read, again, err)
		}
		for i := range read {
			if again[i] != read[i] {
				t.Fatalf("%q is written as %q and read as %q", text, read, again)
			}
		}
	})
}

func TestChips(t *testing.T) {
	f, err := Parse(`state:failed "a b"`)
	if err != nil {
		t.Fatal(err)
	}
	chips := f.Chips()
	if len(chips) != 2 || chips[0] != (Chip{"state:failed", "/?q=%22a+b%22"}) || chips[1].Without != "/?q=state%3Afailed" {
		t.Errorf("%q", chips)
	}
}
