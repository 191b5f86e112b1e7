package dag

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/internal/terms"
)

// line is the JSON form of a node. Base is the node before the fan-out; it is set only for the head of a lane that no node
// follows yet.
type line struct {
	ID      *ID               `json:"id"`
	Type    string            `json:"type"`
	Parents []ID              `json:"parents,omitzero"`
	Content jsonv2.Value      `json:"content"`
	Meta    map[string]string `json:"meta,omitempty"`
	Time    time.Time         `json:"time,omitzero"`
	Base    *ID               `json:"base,omitzero"`
}

// Write writes the nodes of d to w as JSON Lines: one node per line, parents first. A failure in flight is not written: call
// RecordFailure first. A step can write a DAG only if it declares [Everything].
func Write(w io.Writer, d DAG) error {
	if !d.allows(everything, "", "") {
		return d.refuse("", "")
	}
	bases := map[ID]*ID{}
	if d.log != nil {
		for i, h := range d.log.heads() {
			if from := d.log.from()[i]; from != h {
				bases[h.id] = &from.id
			}
		}
	}
	out := bufio.NewWriter(w)
	for n := range d.Nodes() {
		l := line{
			ID:      &n.id,
			Type:    n.typ,
			Content: bytesOf(n.content),
			Meta:    n.meta,
			Time:    n.Time(),
			Base:    bases[n.id],
		}
		for _, p := range n.parents {
			l.Parents = append(l.Parents, p.id)
		}
		if err := jsonv2.MarshalWrite(out, &l, jsonv2.Deterministic(true)); err != nil {
			return fmt.Errorf("write node %s: %w", n, err)
		}
		// A failed write returns its error at the next write or at Flush.
		_ = out.WriteByte('\n')
	}
	return out.Flush()
}

// A FormatError is an invalid line of a written DAG.
type FormatError struct {
	Line   int // counted from 1
	Reason string
}

// Error returns a message with the number of the line and the reason.
func (e *FormatError) Error() string { return fmt.Sprintf("DAG line %d: %s", e.Line, e.Reason) }

// Read reads a DAG in the format that Write writes, and recomputes every id. The error is a *FormatError if an id does not match
// content, type and parents, or if a line is not a node, has an unknown field or precedes the lines of its parents. A repeated
// node changes nothing. Empty lines are skipped. An error from r is returned wrapped, with the line number. Read keeps all nodes
// in memory and does not limit their size.
func Read(r io.Reader) (DAG, error) {
	rd := reader{known: map[ID]*Node{}, bases: map[ID]base{}}
	in := bufio.NewReader(r)
	for rd.number = 1; ; rd.number++ {
		text, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return DAG{}, fmt.Errorf("DAG line %d: %w", rd.number, err)
		}
		if text := bytes.Trim(text, " \t\r\n"); len(text) > 0 {
			if err := rd.line(text); err != nil {
				return DAG{}, &FormatError{Line: rd.number, Reason: err.Error()}
			}
		}
		if err != nil {
			return rd.dag()
		}
	}
}

type reader struct {
	number int // the number of the line
	known  map[ID]*Node
	nodes  []*Node
	bases  map[ID]base
}

// base is the node where a read of a lane's head continues, and the line that names it.
type base struct {
	node *Node
	line int
}

func (rd *reader) line(text []byte) error {
	var l line
	if err := jsonv2.Unmarshal(text, &l, jsonv2.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("want one node as a JSON object: %s", jsonv2.Reason(err))
	}
	if l.ID == nil || l.Type == "" || l.Content == nil {
		return errors.New(`want the fields "id", "type" and "content"`)
	}
	delete(l.Meta, terms.As)
	spec := Spec{Type: l.Type, Content: json.RawMessage(l.Content), Meta: l.Meta, Time: l.Time}
	for _, id := range l.Parents {
		p := rd.known[id]
		if p == nil {
			return fmt.Errorf("node %.12s has the parent %.12s, which is not on an earlier line: parents come first", l.ID, id)
		}
		spec.Parents = append(spec.Parents, p)
	}
	n, err := NewNode(spec)
	if err != nil {
		return err
	}
	if n.id != *l.ID {
		return fmt.Errorf("forged or damaged node: its id is %.12s, but its content, type and parents give %.12s", l.ID, n.id)
	}
	if n.Time().IsZero() != l.Time.IsZero() {
		return fmt.Errorf("node %.12s has the time %s: want a year from 1678 to 2261", l.ID, l.Time.Format(time.RFC3339))
	}
	if rd.known[n.id] != nil {
		return nil
	}
	rd.known[n.id] = n
	rd.nodes = append(rd.nodes, n)
	if l.Base != nil {
		before := rd.known[*l.Base]
		if before == nil {
			return fmt.Errorf("node %.12s has the base %.12s, which is not on an earlier line", l.ID, l.Base)
		}
		rd.bases[n.id] = base{before, rd.number}
	}
	return nil
}

func (rd *reader) dag() (DAG, error) {
	from := make(map[ID]*Node, len(rd.bases))
	for id, b := range rd.bases {
		from[id] = b.node
	}
	d := DAG{log: (*entry)(nil).extend(rd.nodes, from)}
	for _, h := range d.Heads() {
		delete(rd.bases, h.id)
	}
	if len(rd.bases) == 0 {
		return d, nil
	}
	wrong := &FormatError{Reason: "a node that others follow has a base: only the head of a lane can have one"}
	for _, b := range rd.bases {
		if wrong.Line == 0 || b.line < wrong.Line {
			wrong.Line = b.line
		}
	}
	return DAG{}, wrong
}
