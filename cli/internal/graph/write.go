package graph

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/stonelayer/stone/internal/text"
)

// Mermaid returns the drawing as a Mermaid flowchart.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	g.top.mermaid(&b, "  ")
	for _, e := range g.edges {
		from, arrow := e.from, [...]string{next: "-->", lane: "==>", back: "-.->", heal: "-.->", runs: "<-.->"}[e.kind]
		if e.fromFrame != "" {
			from = e.fromFrame
		}
		if e.label != "" {
			arrow += "|" + mermaidText(e.label) + "|"
		}
		fmt.Fprintf(&b, "  %s %s %s\n", from, arrow, e.to)
	}
	return b.String()
}

func (f *frame) mermaid(b *strings.Builder, indent string) {
	for _, n := range f.nodes {
		around := [...][2]string{
			box: {"[", "]"}, choice: {"{", "}"}, question: {"[/", "/]"},
			fork: {"[/", `\]`}, gather: {`[\`, "/]"}, scope: {"[[", "]]"},
		}[n.shape]
		fmt.Fprintf(b, "%s%s%s%s%s\n", indent, n.id, around[0], mermaidText(n.label, n.about...), around[1])
	}
	for _, inner := range f.frames {
		fmt.Fprintf(b, "%ssubgraph %s[%s]\n", indent, inner.id, mermaidText(inner.label))
		inner.mermaid(b, indent+"  ")
		fmt.Fprintf(b, "%send\n", indent)
	}
}

// mermaidText returns a label and the lines below it as quoted text. Characters that have a meaning in Mermaid are replaced by
// entities.
func mermaidText(s string, below ...string) string {
	if s = text.Line(s); s == "" {
		s = " " // an empty text would be a syntax error
	}
	quoted := `"` + mermaidEntities.Replace(s)
	for _, line := range below {
		quoted += "<br/>" + mermaidEntities.Replace(text.Line(line))
	}
	return quoted + `"`
}

var mermaidEntities = strings.NewReplacer(
	`"`, "#quot;", "#", "#35;", "&", "#amp;", "<", "#lt;", ">", "#gt;", "`", "#96;", `\`, "#92;",
)

// DOT returns the drawing in Graphviz's language.
func (g *Graph) DOT() string {
	var b strings.Builder
	b.WriteString("digraph pipeline {\n")
	b.WriteString("  compound=true\n  node [shape=box fontname=\"Helvetica\"]\n  edge [fontname=\"Helvetica\" fontsize=10]\n")
	g.top.dot(&b, "  ")
	for _, e := range g.edges {
		attrs := [...]string{
			next: "", lane: " style=bold", back: " style=dashed constraint=false",
			heal: " style=dashed color=red", runs: " style=dotted dir=both",
		}[e.kind]
		if e.label != "" {
			attrs += " label=\"\u00a0" + dotText(e.label)[1:] // the space separates the label from the line
		}
		if e.fromFrame != "" {
			attrs += " ltail=" + dotText("cluster_"+e.fromFrame)
		}
		if attrs != "" {
			attrs = " [" + attrs[1:] + "]"
		}
		fmt.Fprintf(&b, "  %s -> %s%s\n", e.from, e.to, attrs)
	}
	b.WriteString("}\n")
	return b.String()
}

func (f *frame) dot(b *strings.Builder, indent string) {
	for _, n := range f.nodes {
		shape := [...]string{
			box: "", choice: " shape=diamond", question: " shape=parallelogram",
			fork: " shape=trapezium", gather: " shape=invtrapezium", scope: " peripheries=2",
		}[n.shape]
		fmt.Fprintf(b, "%s%s [label=%s%s]\n", indent, n.id, dotText(n.label, n.about...), shape)
	}
	for _, inner := range f.frames {
		fmt.Fprintf(b, "%ssubgraph cluster_%s {\n%s  label=%s labeljust=l style=rounded fontname=\"Helvetica\"\n", indent, inner.id, indent, dotText(inner.label))
		inner.dot(b, indent+"  ")
		fmt.Fprintf(b, "%s}\n", indent)
	}
}

// dotText returns a label and the lines below it as quoted text. In DOT, a backslash starts an escape sequence, and an ampersand
// starts an entity.
func dotText(s string, below ...string) string {
	quoted := `"` + dotEntities.Replace(text.Line(s))
	for _, line := range below {
		quoted += `\n` + dotEntities.Replace(text.Line(line))
	}
	return quoted + `"`
}

var dotEntities = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")

// ErrNoGraphviz is the error that SVG returns if the command `dot` is not installed.
var ErrNoGraphviz = errors.New("SVG needs the command dot: install the package graphviz, or choose the format mermaid or dot")

// SVG returns the drawing as SVG, laid out by Graphviz.
func (g *Graph) SVG(ctx context.Context) ([]byte, error) {
	dot, err := exec.LookPath("dot")
	if err != nil {
		return nil, ErrNoGraphviz
	}
	cmd := exec.CommandContext(ctx, dot, "-Tsvg")
	cmd.Stdin = strings.NewReader(g.DOT())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("dot failed: %w: %s", err, text.Line(errs.String()))
	}
	return out.Bytes(), nil
}
