package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/redact"
)

var secrets = []string{
	`pass "word"/<&>+ 0123456789 żółw`, "sk-proj-AbC123_xyz-0987", `back\slash\"quoted\\`, "tab\tnew\nline%41%25", "12345678",
}

// forms are the spellings of a secret in a text.
func forms(secret string) map[string]string {
	once, _ := json.Marshal(secret)
	twice, _ := json.Marshal(string(once))
	thrice, _ := json.Marshal(string(twice))
	forms := map[string]string{
		"as it is": secret, "JSON": string(once), "JSON in JSON": string(twice), "JSON in JSON in JSON": string(thrice),
		"query": url.QueryEscape(secret), "path": url.PathEscape(secret), "query twice": url.QueryEscape(url.QueryEscape(secret)),
		"lower case query": strings.ToLower(url.QueryEscape(strings.ToLower(secret))), "hex": hex.EncodeToString([]byte(secret)),
		"every byte in hex of a URL": "%" + strings.Join(strings.Split(fmt.Sprintf("% X", secret), " "), "%"),
		"every rune in JSON":         everyRune(secret), "slashes in JSON": strings.ReplaceAll(string(once), "/", `\/`),
		"HTML": html.EscapeString(secret), "HTML with names": strings.NewReplacer("&#34;", "&quot;", "&#39;", "&apos;").Replace(html.EscapeString(secret)),
		"HTML in numbers": references(secret, "&#%d;"), "HTML in hex": references(secret, "&#x%x;"), "HTML in long hex": references(secret, "&#X00%X;"),
		"HTML without semicolons": references(secret, "&#%d"), "HTML twice": html.EscapeString(html.EscapeString(secret)), "numbers twice": html.EscapeString(references(secret, "&#%d;")),
		"HTML mixed": mixed(secret), "HTML in JSON": string(mustJSON(mixed(secret))), "JSON in HTML": html.EscapeString(string(once)), "HTML in a URL": url.QueryEscape(mixed(secret)),
		"small hex in a URL": regexp.MustCompile("%[0-9A-F]{2}").ReplaceAllStringFunc(url.QueryEscape(secret), strings.ToLower),
		"JSON in a URL":      url.QueryEscape(string(once)), "base64 in a URL": url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("u:" + secret))),
	}
	if strings.ToLower(secret) != secret {
		delete(forms, "lower case query") // it is another secret
	}
	for _, before := range []string{"", "a", "ab", "abc", "user:"} {
		for name, encoding := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding, "raw": base64.RawStdEncoding} {
			for _, after := range []string{"", "x", "xy"} {
				forms[fmt.Sprintf("base64 %s %q %q", name, before, after)] = encoding.EncodeToString([]byte(before + secret + after))
			}
		}
	}
	return forms
}

// references writes each character as a reference of HTML.
func references(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, format, r)
	}
	return b.String()
}

// mixed writes the signs as references of all kinds in turn.
func mixed(s string) string {
	var b strings.Builder
	for i, r := range s {
		name, named := map[rune]string{'"': "&quot;", '\'': "&apos;", '<': "&lt;", '>': "&gt;", '&': "&amp;", '/': "&sol;", '+': "&plus;", '=': "&equals;", ':': "&colon;"}[r]
		switch {
		case r < 128 && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'):
			b.WriteRune(r)
		case named && i%3 == 0:
			b.WriteString(name)
		case i%3 == 1:
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			fmt.Fprintf(&b, "&#x%x;", r)
		}
	}
	return b.String()
}

func mustJSON(s string) []byte {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return data
}

func everyRune(s string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

func set(t *testing.T, values ...string) *redact.Set {
	t.Helper()
	s, err := redact.New(values...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEverySpellingIsFound(t *testing.T) {
	for _, secret := range secrets {
		s := set(t, secret, "another-one")
		for name, text := range forms(secret) {
			clean := s.Clean("before " + text + " after")
			if !strings.Contains(clean, redact.Mark) || !strings.HasPrefix(clean, "before ") || !strings.HasSuffix(clean, " after") || len(clean) > 40 {
				t.Errorf("%s: %q became %q", name, text, clean)
			}
			if again := s.Clean(clean); again != clean {
				t.Errorf("%s: %q became %q when it was cleaned again", name, clean, again)
			}
		}
		if text := `innocent text, another and one 1234567 %41 \u0041 C:\new`; s.Clean(text) != text {
			t.Errorf("%q became %q", text, s.Clean(text))
		}
	}
}

// Secrets that overlap, or share a beginning, leave nothing.
func TestOverlap(t *testing.T) {
	s := set(t, "abcdefgh", "ghijklmn", "sk-12345", "sk-12345-longer-67890", "Bearer sk-12345")
	for text, want := range map[string]string{
		"<abcdefghijklmn>":               "<[redacted]>",
		"<sk-12345-longer-67890>":        "<[redacted]>",
		"<Bearer sk-12345-longer-67890>": "<[redacted]>",
		"<sk-12345-longer>":              "<[redacted]-longer>",
		"abcdefg hijklmn":                "abcdefg hijklmn",
	} {
		if got := s.Clean(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// A text that is passed on in pieces, without its last Open bytes, is as clean as a
// complete one, wherever it is cut; and text that cannot become a secret is not delayed.
func TestOpen(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		secret := secrets[random.IntN(len(secrets))]
		s := set(t, secret, secret[:8]+"-another", "another-one")
		text := ""
		for _, form := range forms(secret) {
			if text += form + " and "; len(text) > 200 {
				break
			}
		}
		said, held := "", ""
		for rest := text; rest != ""; {
			n := 1 + random.IntN(min(len(rest), 20))
			held, rest = held+rest[:n], rest[n:]
			pass := len(held) - s.Open(held)
			said, held = said+s.Clean(held[:pass]), held[pass:]
		}
		said += s.Clean(held)
		if want := s.Clean(text); said != want {
			t.Fatalf("seed %d: said %q, want %q", seed, said, want)
		}
	}
	if n := set(t, secrets...).Open("an ordinary sentence"); n > 0 {
		t.Errorf("%d bytes of an ordinary sentence are held back", n)
	}
}

// The part of a secret before a cut is removed too.
func TestCleanCut(t *testing.T) {
	const secret = "sk-proj-AbC123_xyz-0987"
	s := set(t, secret)
	text := "one " + secret + " two"
	for from := range len(text) {
		for to := from; to <= len(text); to++ {
			clean := s.CleanCut(text[from:to])
			for at := 0; at+redact.MinLength <= len(secret); at++ {
				if piece := secret[at : at+redact.MinLength]; strings.Contains(clean, piece) && (from <= 4+at-1 || true) && (from > 4 && to < 4+len(secret)) == false {
					t.Fatalf("%q became %q", text[from:to], clean)
				}
			}
		}
	}
}

func TestJSON(t *testing.T) {
	s := set(t, secrets...)
	for _, secret := range secrets[:4] {
		nested, _ := json.Marshal(map[string]any{"inner": secret})
		raw, _ := json.Marshal(map[string]any{"key": secret, secret: []any{"a " + secret, string(nested)}, "n": 9007199254740993})
		clean, found, err := s.JSON(raw)
		if err != nil || !found || !json.Valid(clean) || s.Holds(string(clean)) || !strings.Contains(string(clean), "9007199254740993") {
			t.Errorf("%s became %s, %v", raw, clean, err)
		}
	}
	// The letter of an escape does not begin a secret.
	s = set(t, "newsecret")
	if clean, _, err := s.JSON([]byte(`{"a":"x\newsecret"}`)); err != nil || string(clean) != `{"a":"x\newsecret"}` {
		t.Errorf("%s, %v", clean, err)
	}
	if clean, _, err := set(t, "12345678").JSON([]byte(`{"a":12345678}`)); err != nil || string(clean) != `{"a":"[redacted]"}` {
		t.Errorf("%s, %v", clean, err)
	}
	if _, _, err := set(t, `{"type":"service","id":"x"}`).JSON([]byte(`{"of":{"type":"service","id":"x"}}`)); err == nil {
		t.Error("a secret that is a whole object was not reported")
	}
}

func TestNotes(t *testing.T) {
	home := t.TempDir()
	s := new(redact.Set)
	s.NoteHeader("Bearer sk-header-1", "Basic "+base64.StdEncoding.EncodeToString([]byte("me:basic-password")), "application/json")
	s.NoteURL("https://me:url-password@example.com/?token=query-secret")
	s.NoteVariable("ANY", "x7-variable-value")
	s.NoteVariable("APP_SECRET", "lowercaseword")
	s.NoteVariable("APP_MODE", "production")
	s.NoteVariable("PATH", "/usr/bin:/bin")
	s.NoteVariable("HOME", home)
	s.NoteVariable("LANG", "en_US.UTF-8")
	s.NoteVariable("PROXY", "http://me:proxy-password@proxy:3128")
	t.Setenv("STONE_TEST_INHERITED", "x8-inherited-value")
	s.NoteEnv([]string{"STONE_TEST_INHERITED", "API_KEY=x9-given-value", "GOFLAGS=-mod=readonly"})
	other, s2 := s, new(redact.Set)
	s = s2
	s.Join(other)
	for _, secret := range []string{"x8-inherited-value", "x9-given-value", "sk-header-1", "basic-password", "url-password", "query-secret", "x7-variable-value", "lowercaseword", "proxy-password"} {
		if !s.Holds(secret) {
			t.Errorf("%s is no secret", secret)
		}
	}
	for _, innocent := range []string{"Bearer", "-mod=readonly", "application/json", "production", "/usr/bin:/bin", home, "en_US.UTF-8", "example.com"} {
		if s.Holds(innocent) {
			t.Errorf("%s is a secret", innocent)
		}
	}
}

func TestEmpty(t *testing.T) {
	var none *redact.Set
	for _, s := range []*redact.Set{none, new(redact.Set), redact.From(t.Context())} {
		s.Note("short")
		if s.Clean(secrets[0]) != secrets[0] || s.Holds(secrets[0]) || s.CleanCut(secrets[0]) != secrets[0] || s.Open(secrets[0]) != 0 || !s.Empty() {
			t.Error("an empty set changes text")
		}
	}
	if _, err := redact.New("short"); err == nil {
		t.Error("a secret of 5 bytes was taken")
	}
	s := set(t, "redacted")
	if text := "a " + redact.Mark; s.Clean(text) != text {
		t.Error("the replacement of a secret is taken for one")
	}
	if ctx := redact.With(t.Context(), s); redact.From(ctx) != s {
		t.Error("the set of a context is another one")
	}
}

func BenchmarkClean(b *testing.B) {
	s := new(redact.Set)
	for i := range 10 {
		s.Note(fmt.Sprintf("sk-proj-%032x", i*7919))
	}
	text := strings.Repeat(`{"role":"assistant","content":"Stones \"lie\" where they fell.\nNobody asks."},`, 200)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.Clean(text)
	}
}
