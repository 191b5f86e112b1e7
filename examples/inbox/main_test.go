package main

import (
	"strings"
	"testing"
)

func TestBoth(t *testing.T) {
	var out strings.Builder
	if err := both(&out); err != nil {
		t.Fatal(err)
	}
	const want = `without the policy
  sent to ann@example.com: I am in.
  sent to eve@example.org: passwords: …
  The meeting is at ten.
with the policy
  sent to ann@example.com: I am in.
  a person is asked about send_mail {"Text":"passwords: …","To":"eve@example.org"}: no
  The meeting is at ten.
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}
