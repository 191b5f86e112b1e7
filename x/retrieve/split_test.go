package retrieve

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// shown are blocks or pieces on a line each.
func shown(blocks []Block) (all []string) {
	for _, b := range blocks {
		all = append(all, fmt.Sprintf("%d %d-%d %s", b.Level, b.From, b.To, strings.ReplaceAll(b.Text, "\n", "|")))
	}
	return all
}

func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"# A #\n\nb\nc\n\n## D\ne", "1 1-1 A\n0 3-4 b|c\n2 6-6 D\n0 7-7 e"},
		{"A\n===\nb\n\nC\n---\nd", "1 1-2 A\n0 3-3 b\n2 5-6 C\n0 7-7 d"},
		{"a\n```sh\n# no heading\n\n---\n```\n# B", "0 1-1 a\n0 2-6 ```sh|# no heading||---|```\n1 7-7 B"},
		{"~~~~\n# a\n~~~\nb", "0 1-4 ~~~~|# a|~~~|b"}, // a fence that does not end
		{"---\ntitle: A\n---\n# B", "0 2-2 title: A\n1 4-4 B"},
		{"---\n---\n# B", "1 3-3 B"}, {"---\n\n---\n# B", "1 4-4 B"},
		{"--- \ntitle: A\n...\nb", "0 2-2 title: A\n0 4-4 b"},
		{"---\na", "0 1-2 ---|a"},
		{"```npm install x```\n# A\n```\n# no\n```\n# B", "0 1-1 ```npm install x```\n1 2-2 A\n0 3-5 ```|# no|```\n1 6-6 B"},
		{"```\na\n```b\n    ```\n````  \nc", "0 1-5 ```|a|```b|    ```|````  \n0 6-6 c"},
		{"~~~ a`b\nc\n~~~\nd", "0 1-3 ~~~ a`b|c|~~~\n0 4-4 d"},
		{"- a\n  b\n---\nc", "0 1-4 - a|  b|---|c"}, {"> a\n---", "0 1-2 > a|---"}, {"1. a\n---\n\nB\n---", "0 1-2 1. a|---\n2 4-5 B"},
		{"a\n\n---\n\nb", "0 1-1 a\n0 3-3 ---\n0 5-5 b"},
		{"#no\n####### no\n#\n", "0 1-2 #no|####### no\n1 3-3 "},
		{"\ufeff# A\r\n\r\nb\r\n", "1 1-1 A\n0 3-3 b"},
		{"", ""}, {"\n\n", ""},
	} {
		blocks, _, err := Markdown([]byte(c.text))
		if got := strings.Join(shown(blocks), "\n"); err != nil || got != c.want {
			t.Errorf("%q:\n%s\nwant\n%s\n%v", c.text, got, c.want, err)
		}
	}
	_, meta, _ := Markdown([]byte("text\n\n## The title\n"))
	if meta["title"] != "The title" {
		t.Errorf("%v", meta)
	}
}

func TestHTML(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"<h1>A <em>b</em></h1>\n<p>c\nd</p><p>e</p>", "1 1-1 A b\n0 2-3 c|d\n0 3-3 e"},
		{"<!doctype html><head><title>T &amp; x</title><style>p{}</style></head>\n<body>\n<script>if (a<b) {}</script>a<br>b<!-- c --></body>", "0 3-3 a|b"},
		{"<ul><li>a</li><li>b <a href=x>c</a></li></ul>", "0 1-1 a\n0 1-1 b c"},
		{"<table><tr><td>a</td><td>b</td></tr></table>", "0 1-1 a b"},
		{"<pre>\na\n  b\n</pre>", "0 2-3 a|  b"},
		{"<svg><title>no</title><text>no</text></svg>a", "0 1-1 a"},
		{"<p>a &lt; b &eacute;", "0 1-1 a < b é"},
		{"a <template>no <template>no</template> no</template> b", "0 1-1 a\n0 1-1 b"},
		{"<h2>a<p>b</h7></p", "2 1-1 a\n0 1-1 b"},
		{"", ""},
	} {
		blocks, _, err := HTML([]byte(c.text))
		if got := strings.Join(shown(blocks), "\n"); err != nil || got != c.want {
			t.Errorf("%q:\n%s\nwant\n%s\n%v", c.text, got, c.want, err)
		}
	}
	_, meta, _ := HTML([]byte("<title> a\n b </title><title>c</title>"))
	if meta["title"] != "a b" {
		t.Errorf("%v", meta)
	}
}

func TestSplit(t *testing.T) {
	blocks := func(text string) []Block { b, _, _ := Markdown([]byte(text)); return b }
	for _, c := range []struct {
		text          string
		size, overlap int
		want          string
	}{
		{"# A\n\none\n\ntwo\n\n## B\n\nthree\n\n# C\n\nfour", 100, 0, "A 3-5 one||two\nA > B 9-9 three\nC 13-13 four"},
		{"one\n\ntwo\n\nthree\n\nfour", 12, 0, " 1-3 one||two\n 5-7 three||four"},
		{"one\n\ntwo\n\nthree\n\nfour", 12, 6, " 1-3 one||two\n 3-5 two||three\n 7-7 four"},
		{"a long line\nand another one\nof a paragraph", 30, 0, " 1-2 a long line|and another one\n 3-3 of a paragraph"},
		{"One is here. Two is it. Three too. Four", 24, 0, " 1-1 One is here. Two is\n 1-1 it. Three too. Four"},
		{strings.Repeat("é", 20), 16, 0, " 1-1 éééééééé\n 1-1 éééé\n 1-1 éééééééé"},
		{"## B\n\nunder no A", 100, 0, "B 3-3 under no A"},
		{"# A\n\n## B\n", 100, 0, "A 3-3 B"},
		{"# A\n\n## B\n# C\n\nc\n\n## D\n## E\n\ne", 100, 0, "A 3-3 B\nC 6-6 c\nC 8-8 D\nC > E 11-11 e"},
		{"# " + strings.Repeat("ü", 150) + "\n\na", 100, 0, strings.Repeat("ü", 100) + "… 3-3 a"},
	} {
		var got []string
		for _, p := range split(blocks(c.text), c.size, c.overlap) {
			got = append(got, fmt.Sprintf("%s %d-%d %s", p.Heading, p.From, p.To, strings.ReplaceAll(p.Text, "\n", "|")))
		}
		if got := strings.Join(got, "\n"); got != c.want {
			t.Errorf("%q:\n%s\nwant\n%s", c.text, got, c.want)
		}
	}
}

// Of every text, in whatever form: pieces are within their size and are valid UTF-8, each word is in the lines that its
// piece names, and none is lost.
func TestSplitKeepsWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"word", "a", "longerwordthanothers", "été", "日本語", " ", " ", "\n", "\n", "\n\n", ". ", "# ", "## ", "```\n", "---\n", "- ", "\t"})).Draw(t, "parts")
		text := ""
		n := 0
		for _, p := range parts {
			if strings.ContainsAny(p, "wlaé日") && !strings.ContainsAny(p, "# -`") {
				n++
				p += fmt.Sprint(n) // each word is another one
			}
			text += p
		}
		size, overlap := rapid.IntRange(64, 300).Draw(t, "size"), rapid.IntRange(0, 60).Draw(t, "overlap")
		rows := strings.Split(text, "\n")
		for name, read := range map[string]Reader{"text": Text, "markdown": Markdown} {
			blocks, _, err := read([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			kept := ""
			for _, p := range split(blocks, size, overlap) {
				kept += p.Heading + " " + p.Text + " "
				if len(p.Text) > size || !utf8.ValidString(p.Text) || strings.TrimSpace(p.Text) == "" {
					t.Fatalf("%s: a piece of %d bytes: %q", name, len(p.Text), p.Text)
				}
				if p.From < 1 || p.To < p.From || p.To > len(rows) {
					t.Fatalf("%s: lines %d-%d of %d", name, p.From, p.To, len(rows))
				}
				lines := strings.Join(rows[p.From-1:p.To], "\n")
				for _, word := range strings.Fields(p.Text) {
					if !strings.Contains(lines, word) {
						t.Fatalf("%s: %q is not in lines %d-%d: %q", name, word, p.From, p.To, lines)
					}
				}
			}
			heads := ""
			for _, b := range blocks {
				if b.Level > 0 {
					heads += b.Text + " "
				}
			}
			squeezed := strings.ReplaceAll(kept+heads, " ", "")
			for i := range n {
				if !strings.Contains(squeezed, fmt.Sprint(i+1)) {
					t.Fatalf("%s: word %d of %q is lost", name, i+1, text)
				}
			}
		}
	})
}

func FuzzHTML(f *testing.F) {
	f.Add([]byte("<h1>a</h1><pre>b</title>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		blocks, _, err := HTML(data)
		rows := strings.Count(string(data), "\n") + 1
		for _, b := range blocks {
			if b.From < 1 || b.To < b.From || b.To > rows {
				t.Errorf("lines %d-%d of %d, %v", b.From, b.To, rows, err)
			}
		}
	})
}

func TestReaderPanics(t *testing.T) {
	x := &Index{Readers: map[string]Reader{".x": func([]byte) ([]Block, map[string]string, error) { panic("broken") }}}
	if _, err := x.document("a.X", []byte("a")); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("%v", err)
	}
	if _, err := x.document("a.pdf", []byte("a")); err == nil || !strings.Contains(err.Error(), "x/retrieve/pdf") {
		t.Errorf("%v", err)
	}
}

func TestWithin(t *testing.T) {
	base := Query{K: 5, Under: "guide/", Where: map[string]string{"tenant": "a"}, Words: true}
	for under, want := range map[string]string{"": "guide", "guide": "guide", "guide/a.md": "guide/a.md", "a": "guide/a", "../secret": "guide/secret", "guide/../secret": "guide/secret", "/": "guide", "guides": "guide/guides"} {
		q := Query{Text: "t", K: 50, Under: under, Where: map[string]string{"tenant": "a", "type": "html"}}.Within(base)
		if q.Under != want || q.K != 5 || q.Where["tenant"] != "a" || q.Where["type"] != "html" || !q.Words {
			t.Errorf("%q: %+v", under, q)
		}
	}
	contradiction := Query{Text: "t", Under: "guide", Where: map[string]string{"tenant": "b"}}.Within(base)
	if again := contradiction.Within(base); contradiction.Under != nowhere || contradiction.Where["tenant"] != "a" || again.Under != nowhere {
		t.Errorf("%+v, again %+v", contradiction, again)
	}
	many := map[string]string{}
	for i := range 2000 {
		many[fmt.Sprint(i)] = "x"
	}
	for _, q := range []Query{{Text: "t", Where: many}, {Text: "t", Where: map[string]string{"a": strings.Repeat("x", 1<<10)}}, {Text: "t", Under: strings.Repeat("x", 1<<13)}} {
		if err := q.Check(); err == nil || !strings.Contains(err.Error(), "want at most") {
			t.Errorf("%v", err)
		}
	}
	if q := (Query{Text: "t"}).Within(Query{}); q.Under != "" || q.K != 0 || q.Where != nil {
		t.Errorf("%+v", q)
	}
}

// A reader with a heading of no level leaves its file out, and the others are indexed.
func TestLevelOfReader(t *testing.T) {
	for _, level := range []int{-1, 7} {
		read := func([]byte) ([]Block, map[string]string, error) { return []Block{{Text: "x", Level: level}}, nil, nil }
		if _, _, err := safely(read, nil); err == nil {
			t.Errorf("level %d is accepted", level)
		}
	}
}

// A file of nothing but headings has as many pieces as lines: it is left out, and says why.
func TestTooManyPieces(t *testing.T) {
	for lines, want := range map[int]error{1000: nil, maxPieces + 1: errPieces} {
		d, err := new(Index).document("a.md", []byte(strings.Repeat("# a\n", lines)))
		if err != want || want == nil && len(d.pieces) != lines {
			t.Errorf("%d headings: %d pieces, %v", lines, len(d.pieces), err)
		}
	}
}
