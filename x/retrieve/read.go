package retrieve

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// readers maps file extensions to the readers of this package. Files with other extensions are plain text.
var readers = map[string]Reader{
	".md": Markdown, ".markdown": Markdown, ".html": HTML, ".htm": HTML, ".xhtml": HTML,
}

// reader returns the reader for a file and the type of the document.
func (x *Index) reader(name string) (Reader, string) {
	ext := strings.ToLower(path.Ext(name))
	if r := x.Readers[ext]; r != nil {
		return r, strings.TrimPrefix(ext, ".")
	}
	switch r := readers[ext]; {
	case r == nil:
		return Text, "text"
	case strings.HasPrefix(ext, ".m"):
		return r, "markdown"
	default:
		return r, "html"
	}
}

// known maps the extension of each format that needs a reader of its own to the package of the reader.
var known = map[string]string{".pdf": "x/retrieve/pdf"}

// errBinary is the reason why a binary file is skipped.
var errBinary = errors.New("binary or not UTF-8")

// unreadable returns an error that says why a file cannot be read as text, or nil if it can.
func (x *Index) unreadable(name string, data []byte) error {
	ext := strings.ToLower(path.Ext(name))
	switch {
	case !utf8.ValidString(name):
		return errors.New("its name is not UTF-8")
	case x.Readers[ext] != nil:
		return nil
	}
	if pkg := known[ext]; pkg != "" {
		return fmt.Errorf("no reader for %s: set Index.Readers[%q] to the one of package %s", ext, ext, pkg)
	}
	if bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
		return errBinary
	}
	return nil
}

// document reads a file and splits it.
func (x *Index) document(name string, data []byte) (d document, err error) {
	if err := x.unreadable(name, data); err != nil {
		return d, err
	}
	read, kind := x.reader(name)
	blocks, meta, err := safely(read, data)
	if err != nil {
		return d, err
	}
	all := map[string]string{"type": kind}
	maps.Copy(all, meta)
	if x.Meta != nil {
		maps.Copy(all, x.Meta(name))
	}
	cleaned := map[string]string{}
	for key, value := range all {
		cleaned[clean(key)] = clean(value)
	}
	for i := range blocks {
		blocks[i].Text = clean(blocks[i].Text)
	}
	blocks = slices.DeleteFunc(blocks, func(b Block) bool { return b.Level == 0 && strings.TrimSpace(b.Text) == "" }) // embedders do not accept empty texts
	d = document{name: name, digest: x.address(name, data), meta: cleaned}
	pieces := split(blocks, x.size(), x.overlap())
	if len(pieces) > maxPieces {
		return d, errPieces
	}
	for _, p := range pieces {
		p.File = name
		d.pieces = append(d.pieces, p)
	}
	return d, nil
}

func safely(read Reader, data []byte) (blocks []Block, meta map[string]string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("its reader panicked: %v", cause)
		}
	}()
	blocks, meta, err = read(data)
	for _, b := range blocks {
		if b.Level < 0 || b.Level > maxLevel {
			return nil, nil, fmt.Errorf("its reader returns a heading of level %d: want 0, which is text, to %d", b.Level, maxLevel)
		}
	}
	return blocks, meta, err
}

// Text is a Reader for plain text, in which blank lines separate paragraphs.
func Text(data []byte) ([]Block, map[string]string, error) {
	return paragraphs(lines(data), 1), nil, nil
}

// lines returns the lines of a text, without a byte order mark or carriage returns.
func lines(data []byte) []string {
	text := strings.TrimPrefix(string(data), "\ufeff")
	all := strings.Split(text, "\n")
	for i := range all {
		all[i] = strings.TrimRight(all[i], "\r")
	}
	return all
}

// paragraphs returns the blocks between blank lines. From is the number of the first line.
func paragraphs(all []string, from int) (blocks []Block) {
	start := -1
	for i := 0; i <= len(all); i++ {
		switch blank := i == len(all) || strings.TrimSpace(all[i]) == ""; {
		case !blank && start < 0:
			start = i
		case blank && start >= 0:
			blocks = append(blocks, Block{Text: strings.Join(all[start:i], "\n"), From: from + start, To: from + i - 1})
			start = -1
		}
	}
	return blocks
}

var (
	heading   = regexp.MustCompile(`^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$`)
	underline = regexp.MustCompile(`^ {0,3}(=+|-+)[ \t]*$`)
	item      = regexp.MustCompile(`^ {0,3}(>|([-+*]|\d{1,9}[.)])[ \t])`) // start of a quotation or a list item
	fence     = regexp.MustCompile("^ {0,3}(?:(`{3,})[^`]*|(~{3,}).*)$")  // CommonMark 4.5
)

// Markdown is a Reader for Markdown. It returns headings, paragraphs and fenced code blocks, which are not split. The first
// heading is the title of the document.
func Markdown(data []byte) (blocks []Block, meta map[string]string, err error) {
	all := lines(data)
	start := 0 // first of the lines that are not in a block yet
	flush := func(end int) {
		blocks = append(blocks, paragraphs(all[start:end], start+1)...)
	}
	if len(all) > 0 && strings.TrimRight(all[0], " \t") == "---" { // YAML metadata, which has no sections
		end := slices.IndexFunc(all[1:], func(line string) bool {
			line = strings.TrimRight(line, " \t")
			return line == "---" || line == "..."
		})
		if text := strings.Join(all[1:max(end, 0)+1], "\n"); strings.TrimSpace(text) != "" {
			blocks = append(blocks, Block{Text: text, From: 2, To: end + 1})
		}
		if end >= 0 {
			start = end + 2
		}
	}
	for i := start; i < len(all); i++ {
		if m := fence.FindStringSubmatch(all[i]); m != nil {
			flush(i)
			end := i + 1
			for end < len(all) && !closes(all[end], m[1]+m[2]) {
				end++
			}
			end = min(end, len(all)-1)
			blocks = append(blocks, Block{Text: strings.Join(all[i:end+1], "\n"), From: i + 1, To: end + 1})
			start, i = end+1, end
		} else if m := heading.FindStringSubmatch(all[i]); m != nil {
			flush(i)
			blocks = append(blocks, Block{Text: strings.TrimSpace(m[2]), Level: len(m[1]), From: i + 1, To: i + 1})
			start = i + 1
		} else if m := underline.FindStringSubmatch(all[i]); m != nil && underlines(all[start:i]) {
			flush(i - 1)
			level := 1
			if m[1][0] == '-' {
				level = 2
			}
			blocks = append(blocks, Block{Text: strings.TrimSpace(all[i-1]), Level: level, From: i, To: i + 1})
			start = i + 1
		}
	}
	flush(len(all))
	for _, b := range blocks {
		if b.Level > 0 && b.Text != "" {
			return blocks, map[string]string{"title": b.Text}, nil
		}
	}
	return blocks, nil, nil
}

// underlines reports whether a line of marks below these lines turns the last one into a heading. Below a list or a quotation,
// such a line is a rule.
func underlines(above []string) bool {
	first := len(above)
	for first > 0 && strings.TrimSpace(above[first-1]) != "" {
		first--
	}
	return first < len(above) && !slices.ContainsFunc(above[first:], item.MatchString)
}

// closes reports whether a line ends a code block: a fence of the same character, at least as long, with nothing after it.
func closes(line, open string) bool {
	inner := strings.TrimLeft(line, " ")
	return len(line)-len(inner) <= 3 && strings.HasPrefix(inner, open) && strings.Trim(inner, open[:1]+" \t") == ""
}

// hidden contains the elements whose text is not shown, inline the elements that do not end a paragraph.
var (
	hidden = []atom.Atom{atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Title}
	inline = []atom.Atom{atom.A, atom.Abbr, atom.B, atom.Bdi, atom.Bdo, atom.Cite, atom.Code, atom.Data, atom.Del, atom.Dfn, atom.Em, atom.Font, atom.I,
		atom.Img, atom.Ins, atom.Kbd, atom.Label, atom.Mark, atom.Q, atom.S, atom.Samp, atom.Small, atom.Span, atom.Strong, atom.Sub, atom.Sup, atom.Time,
		atom.Tt, atom.U, atom.Var, atom.Wbr}
)

// HTML parses an HTML document and returns its headings and the text of its other elements. Scripts and styles are omitted.
func HTML(data []byte) (blocks []Block, meta map[string]string, err error) {
	p := htmlPage{line: 1, meta: map[string]string{}}
	for z := html.NewTokenizer(bytes.NewReader(data)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			if p.flush(); !errors.Is(z.Err(), io.EOF) {
				return nil, nil, z.Err()
			}
			return p.blocks, p.meta, nil
		}
		rows := bytes.Count(z.Raw(), []byte("\n")) // before the call of Token, which changes the text
		p.last = p.line + rows
		p.token(kind, z.Token())
		p.line = p.last
	}
}

// An htmlPage is a page that is being read.
type htmlPage struct {
	blocks []Block
	meta   map[string]string
	line   int // line on which the token begins
	last   int // line on which the token ends; entities may add lines to the token's text
	text   strings.Builder
	block  Block     // block that is open
	hiding atom.Atom // hidden element that is open
	depth  int       // number of open elements with the name of the hidden one
	pre    int
}

func (p *htmlPage) token(kind html.TokenType, t html.Token) {
	switch a := t.DataAtom; {
	case p.hiding != 0:
		switch {
		case kind == html.StartTagToken && a == p.hiding:
			p.depth++
		case kind == html.EndTagToken && a == p.hiding:
			if p.depth--; p.depth == 0 {
				p.hiding = 0
			}
		case kind == html.TextToken && p.hiding == atom.Title:
			p.meta["title"] = cmp.Or(p.meta["title"], strings.Join(strings.Fields(t.Data), " "))
		}
	case kind == html.StartTagToken && slices.Contains(hidden, a):
		p.flush()
		p.hiding, p.depth = a, 1
	case kind == html.TextToken:
		if strings.TrimSpace(t.Data) != "" {
			lead := len(t.Data) - len(strings.TrimLeft(t.Data, " \t\r\n"))
			tail := len(strings.TrimRight(t.Data, " \t\r\n"))
			if p.block.From == 0 {
				p.block.From = min(p.line+strings.Count(t.Data[:lead], "\n"), p.last)
			}
			p.block.To = min(p.line+strings.Count(t.Data[:tail], "\n"), p.last)
		}
		p.text.WriteString(t.Data)
	case kind == html.StartTagToken || kind == html.EndTagToken || kind == html.SelfClosingTagToken:
		p.tag(kind, t.Data, a)
	}
}

// tag starts or ends a block.
func (p *htmlPage) tag(kind html.TokenType, name string, a atom.Atom) {
	switch {
	case slices.Contains(inline, a):
		return
	case a == atom.Br:
		p.text.WriteByte('\n')
		return
	case a == atom.Td || a == atom.Th:
		p.text.WriteByte(' ')
		return
	}
	p.flush()
	switch {
	case a == atom.Pre && kind == html.StartTagToken:
		p.pre++
	case a == atom.Pre:
		p.pre = max(p.pre-1, 0)
	case kind == html.StartTagToken && len(name) == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '6':
		p.block.Level = int(name[1] - '0')
	}
}

// flush ends the open block.
func (p *htmlPage) flush() {
	text := p.text.String()
	p.text.Reset()
	if p.pre == 0 {
		rows := strings.Split(text, "\n")
		for i := range rows {
			rows[i] = strings.Join(strings.Fields(rows[i]), " ")
		}
		text = strings.Join(slices.DeleteFunc(rows, func(row string) bool { return row == "" }), "\n")
	}
	if strings.TrimSpace(text) != "" {
		p.block.Text = strings.Trim(text, "\n")
		p.blocks = append(p.blocks, p.block)
	}
	p.block = Block{}
}
