package page

import (
	"bytes"
	"html"
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// mostMarkdown is the maximum size of a text that is rendered. Larger texts are shown unchanged.
const mostMarkdown = 16 << 10

// markdowns renders text written by models. Goldmark omits raw HTML and dangerous link targets, such as javascript: URLs,
// unless it is told otherwise.
var markdowns = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(shown{}, 100))),
)

// markdown renders a model's text. A text that has no Markdown, or is too large or too deeply nested, is shown unchanged.
func markdown(text string) template.HTML {
	if len(text) <= mostMarkdown && strings.ContainsAny(text, "*_`#[|~-") && !deep(text) {
		var out bytes.Buffer
		if err := markdowns.Convert([]byte(text), &out); err == nil {
			return template.HTML(`<div class="markdown">` + out.String() + `</div>`)
		}
	}
	return template.HTML(`<div class="words">` + html.EscapeString(text) + `</div>`)
}

// deep reports whether the elements of a text could be nested too deeply to be shown.
func deep(text string) bool {
	const most, widest = 40, 200
	for line := range strings.Lines(text) {
		nested := 0
		for _, c := range line {
			switch c {
			case '>', '[', '-', '*', '+', '_':
				nested++
			case ' ', '\t':
			default:
				nested = 0
			}
			if nested > most && (len(line) > widest || strings.Trim(line, "-*_ \r\n") != "") { // otherwise the line is a horizontal rule
				return true
			}
		}
	}
	return false
}

// shown overrides how some elements are rendered: images are not loaded, and headings rank below the page's own headings.
type shown struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (shown) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindImage, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		write(w, entering, `<span class="note">[picture: `, `]</span>`)
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindHeading, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		write(w, entering, "<p><b>", "</b></p>\n")
		return ast.WalkContinue, nil
	})
}

func write(w util.BufWriter, entering bool, before, after string) {
	if !entering {
		before = after
	}
	_, _ = w.WriteString(before) // the buffer reports the error later
}
