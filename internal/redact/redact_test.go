package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/redact"
)

const secret = `pass "word"/<&>+ 0123456789 żółw`

func TestEverySpellingIsFound(t *testing.T) {
	set, err := redact.New(secret, "another-one")
	if err != nil {
		t.Fatal(err)
	}
	once, _ := json.Marshal(secret)
	twice, _ := json.Marshal(string(once))
	texts := map[string]string{
		"as it is": secret, "JSON": string(once), "JSON in JSON": string(twice),
		"query": url.QueryEscape(secret), "path": url.PathEscape(secret),
	}
	for _, before := range []string{"", "a", "ab", "abc", "user:"} {
		for name, encoding := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding, "raw": base64.RawStdEncoding} {
			for _, after := range []string{"", "x", "xy"} {
				texts[fmt.Sprintf("base64 %s %q %q", name, before, after)] = encoding.EncodeToString([]byte(before + secret + after))
			}
		}
	}
	for name, text := range texts {
		clean := set.Clean("before " + text + " after")
		if !strings.Contains(clean, "sha256:") || !strings.HasPrefix(clean, "before ") || !strings.HasSuffix(clean, " after") {
			t.Errorf("%s: %q became %q", name, text, clean)
		}
	}
	if text := "innocent text, another and one"; set.Holds(text) {
		t.Errorf("%q became %q", text, set.Clean(text))
	}
}

func TestEmpty(t *testing.T) {
	var none *redact.Set
	for _, set := range []*redact.Set{none, new(redact.Set)} {
		if set.Clean(secret) != secret || set.Holds(secret) {
			t.Error("an empty set changes text")
		}
	}
	if _, err := redact.New("short"); err == nil {
		t.Error("a secret of 5 bytes was taken")
	}
}
