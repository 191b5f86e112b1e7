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

// ErrNoGraphviz is the error of SVG if the command `dot` is not installed.
var ErrNoGraphviz = errors.New("SVG needs the command dot: install the package graphviz, or choose the format mermaid or dot")

// SVG returns the drawing, laid out by Graphviz.
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
