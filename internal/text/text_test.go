package text

import (
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain", "plain"},
		{" two\nlines\r\n", "two lines"},
		{"\x1b[31mred\x07", "\ufffd[31mred\ufffd"},
		{"a\u202eb", "a\ufffdb"},
		{"größe 表", "größe 表"},
	} {
		if got := Line(c.in); got != c.want {
			t.Errorf("Line(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestLines(t *testing.T) {
	got := Lines("\n  -dir string\r\n\tthe \x1b[1mdirectory  \n\nend\n")
	want := []string{"  -dir string", "    the \ufffd[1mdirectory", "", "end"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"表表表", 6, "表表表"},
		{"表表表", 5, "表表…"},
		{"表表表", 4, "表…"},
		{"e\u0301e\u0301", 2, "e\u0301e\u0301"},
		{"abc", 1, "…"},
		{"abc", 0, ""},
		{"", 0, ""},
	} {
		if got := Cut(c.in, c.n); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("a表e\u0301", 2)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = min(max(n, 0), 100)
		if !utf8.ValidString(s) {
			return
		}
		if got := Cut(Line(s), n); Width(got) > n {
			t.Errorf("Cut(%q, %d) = %q takes %d columns", s, n, got, Width(got))
		}
	})
}

func TestWriter(t *testing.T) {
	const in = "ż\x1b[2J\tone\r\ntwo\u009b\u202e 表"
	for n := 1; n <= len(in); n++ {
		var out strings.Builder
		w := &Writer{W: &out}
		for rest := in; rest != ""; {
			piece := rest[:min(n, len(rest))]
			rest = rest[len(piece):]
			if wrote, err := io.WriteString(w, piece); err != nil || wrote != len(piece) {
				t.Fatalf("wrote %d of %d bytes, %v", wrote, len(piece), err)
			}
		}
		if want := "ż\ufffd[2J\tone\ntwo\ufffd\ufffd 表"; out.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", n, out.String(), want)
		}
	}
}

func TestWithoutBase64(t *testing.T) {
	long := strings.Repeat("iVBORw0KGgo=", 4000)
	for in, want := range map[string]string{
		`{"data":"` + long + `","type":"image/png"}`:    `{"data":"[36 KB in base64]","type":"image/png"}`,
		`["` + long + `","` + long + `"]`:               `["[36 KB in base64]","[36 KB in base64]"]`,
		`"` + long + `"`:                                `"[36 KB in base64]"`,
		`{"short":"iVBORw0KGgo=","n":1}`:                `{"short":"iVBORw0KGgo=","n":1}`,
		`{"a":"` + long + ` words"}`:                    `{"a":"` + long + ` words"}`,
		`{"a \\\"":"` + long[:500] + `\"` + long + `"}`: `{"a \\\"":"` + long[:500] + `\"` + long + `"}`,
		`no JSON "` + long:                              `no JSON "[36 KB in base64]`,
		`"`:                                             `"`,
		`"\`:                                            `"\`,
		``:                                              ``,
	} {
		if got := WithoutBase64(in); got != want {
			t.Errorf("%.60s: got %.100s", in, got)
		}
	}
}

// No character hides or reorders others.
func TestHiddenCharacters(t *testing.T) {
	for _, r := range "\u061c\u200b\u200e\u200f\u202a\u202e\u2060\u2066\u2069\u206a\ufeff\ufff9\U000e0041" {
		in, want := "a"+string(r)+"b", "a\ufffdb"
		var b strings.Builder
		if _, err := (&Writer{W: &b}).Write([]byte(in)); err != nil || b.String() != want {
			t.Errorf("a terminal is sent %q for %q, %v", b.String(), in, err)
		}
		if got := Line(in); got != want {
			t.Errorf("the line of %q is %q", in, got)
		}
	}
	for _, kept := range []string{"می\u200cخواهم", "👩\u200d💻", "שלום"} {
		if got := Line(kept); got != kept {
			t.Errorf("the line of %q is %q", kept, got)
		}
	}
}

// Bytes that are no character take a column.
func TestFoldInvalid(t *testing.T) {
	if got := Fold("ab\xff \xffcd\xc3", 4); !slices.Equal(got, []string{"ab\xff", "\xffcd\xc3"}) {
		t.Errorf("%q", got)
	}
}
