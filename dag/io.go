package dag

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// line is a node as it is written. A line with nothing but a base stands at the
// end of a DAG that ends in a fan-out whose lanes nobody has read yet.
type line struct {
	ID      *ID               `json:"id,omitempty"`
	Type    string            `json:"type,omitempty"`
	Parents []ID              `json:"parents,omitempty"`
	Content json.RawMessage   `json:"content,omitempty"`
	Meta    map[string]string `json:"meta,omitempty"`
	Time    *time.Time        `json:"time,omitempty"`
	Base    *ID               `json:"base,omitempty"`
}

// Write writes the nodes as JSON Lines, one node a line, parents first. A
// failure in flight is not written: record it first.
func Write(w io.Writer, d DAG) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for n := range d.Nodes() {
		l := line{ID: &n.id, Type: n.typ, Content: json.RawMessage(bytesOf(n.content))}
		for _, p := range n.parents {
			l.Parents = append(l.Parents, p.id)
		}
		l.Meta = n.meta
		if at := n.Time(); !at.IsZero() {
			l.Time = &at
		}
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("write node %s: %w", n, err)
		}
	}
	if base := d.log.base(); base != nil {
		if err := enc.Encode(line{Base: &base.id}); err != nil {
			return fmt.Errorf("write DAG: %w", err)
		}
	}
	return out.Flush()
}

// A FormatError says which line of a written DAG is refused, and why.
type FormatError struct {
	Line   int // from 1
	Reason string
}

// Error names the line.
func (e *FormatError) Error() string { return fmt.Sprintf("DAG line %d: %s", e.Line, e.Reason) }

// Read reads what Write writes. Every id is computed anew; a node whose id does
// not match its content, type and parents is refused with a *FormatError, as is
// a line that is no node or comes before its parents.
func Read(r io.Reader) (DAG, error) {
	rd := reader{known: map[ID]*Node{}}
	in := bufio.NewReader(r)
	for number := 1; ; number++ {
		text, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return DAG{}, fmt.Errorf("DAG line %d: %w", number, err)
		}
		if text := bytes.TrimSpace(text); len(text) > 0 {
			if err := rd.line(text); err != nil {
				return DAG{}, &FormatError{Line: number, Reason: err.Error()}
			}
		}
		if err != nil {
			return rd.dag(), nil
		}
	}
}

type reader struct {
	known map[ID]*Node
	nodes []*Node
	base  *Node
}

func (rd *reader) line(text []byte) error {
	var l line
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return fmt.Errorf("want one node as a JSON object: %w", err)
	}
	if l.Base != nil {
		if rd.base = rd.known[*l.Base]; rd.base == nil {
			return fmt.Errorf("base %.12s is none of the nodes above", l.Base)
		}
		return nil
	}
	if l.ID == nil || l.Content == nil {
		return errors.New(`want the fields "id", "type" and "content"`)
	}
	spec := Spec{Type: l.Type, Content: l.Content, Meta: l.Meta}
	if l.Time != nil {
		spec.Time = *l.Time
	}
	for _, id := range l.Parents {
		p := rd.known[id]
		if p == nil {
			return fmt.Errorf("node %.12s has the parent %.12s, which does not stand above it: parents come first", l.ID, id)
		}
		spec.Parents = append(spec.Parents, p)
	}
	n, err := NewNode(spec)
	if err != nil {
		return err
	}
	if n.id != *l.ID {
		return fmt.Errorf("forged or damaged node: it is said to be %.12s, but its content, type and parents give %.12s", l.ID, n.id)
	}
	if rd.known[n.id] == nil {
		rd.known[n.id] = n
		rd.nodes = append(rd.nodes, n)
	}
	return nil
}

func (rd *reader) dag() DAG {
	if len(rd.nodes) == 0 {
		return DAG{}
	}
	return DAG{log: (*entry)(nil).add(group{nodes: rd.nodes, heads: leaves(nil, rd.nodes), base: rd.base})}
}
