package evidence

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// A report is the result of verify.
type report struct {
	Run                       string // ID of the run
	Records, Nodes, Questions int
	Sum                       dag.ID   // sum of the seal
	Problems                  []string // descriptions of changed, added, moved or missing lines; nil if the file is unchanged
}

// verify reads a file that write has written and recomputes every hash. Changes of the file are listed in the report. It returns
// an error if reading fails or if the file is not an evidence file.
func verify(r io.Reader) (report, error) {
	v := verifier{sums: map[string]dag.ID{}, nodes: map[dag.ID]*dag.Node{}}
	in := bufio.NewReader(r)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return v.report, err
		}
		if len(text) == 0 {
			if v.seal == nil && v.entries == nil {
				return report{}, errors.New("it is not an evidence file: no line was written by `stone export --as evidence`")
			}
			v.compare()
			return v.report, nil
		}
		v.line(text)
	}
}

const maxStrange = 10 // maximum number of unreadable lines to report

type verifier struct {
	report
	lines   int
	strange int               // number of lines that cannot be read
	entries []entry           // entries of the lines so far
	sums    map[string]dag.ID // sums of the lines, by name
	nodes   map[dag.ID]*dag.Node
	seal    *seal
}

func (v *verifier) problem(format string, args ...any) {
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

func (v *verifier) line(text []byte) {
	v.lines++
	var l line
	if err := json.Unmarshal(text, &l); err != nil || l == (line{}) {
		if v.strange++; v.strange <= maxStrange {
			v.problem("changed: line %d is not an evidence line", v.lines)
		}
		return
	}
	name := l.name()
	if own, err := l.text(); err != nil || !bytes.Equal(own, text) {
		v.problem("changed: %s is not in the form that export writes", name)
	}
	if l.Seal != nil && v.seal == nil {
		if v.seal, v.Sum = l.Seal, l.Seal.Sum; sum(l.Seal.Lines) != v.Sum {
			v.problem("changed: %s", name)
		}
		return
	}
	if _, second := v.sums[name]; second || v.seal != nil {
		v.problem("added: %s in line %d", name, v.lines)
		return
	}
	v.entries = append(v.entries, entry{name, sha256.Sum256(text)})
	v.sums[name] = v.entries[len(v.entries)-1].Sum
	switch {
	case l.Run != nil && l.Run.Evidence != version:
		v.problem("%s has version %d of the format, this program knows %d", name, l.Run.Evidence, version)
	case l.Run != nil:
		v.Run = l.Run.Info.ID
	case l.Record != nil:
		v.Records++
		if s := l.Record; s.Result != nil && (s.Result.Seal() != s.Result.Sum || s.Step.Sum != s.Result.Sum) {
			v.problem("changed: the result of %s does not match its checksum", name)
		}
	case l.Node != nil:
		v.Nodes++
		v.node(name, l.Node)
	default:
		v.Questions++
	}
}

// node recomputes the ID of a node from its type, content and parents.
func (v *verifier) node(name string, n *journal.NodeInfo) {
	spec := dag.Spec{Type: n.Type, Content: n.Content, Meta: n.Meta, Time: n.Time}
	for _, id := range n.Parents {
		if spec.Parents = append(spec.Parents, v.nodes[id]); v.nodes[id] == nil {
			v.problem("missing: the node %.12s, a parent of %s", id, name)
			return
		}
	}
	switch made, err := dag.NewNode(spec); {
	case err != nil:
		v.problem("changed: %s: %v", name, err)
	case made.ID() != n.ID:
		v.problem("changed: %s: its type, content and parents give the id %.12s", name, made.ID())
	default:
		v.nodes[n.ID] = made
	}
}

// compare compares the lines that were read with those listed in the seal.
func (v *verifier) compare() {
	if v.seal == nil {
		v.problem("missing: the seal, which is the last line")
		return
	}
	for _, e := range v.seal.Lines {
		if own, ok := v.sums[e.Name]; !ok {
			v.problem("missing: %s", e.Name)
		} else if own != e.Sum {
			v.problem("changed: %s", e.Name)
		}
		delete(v.sums, e.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(v.sums)) {
		v.problem("added: %s", name)
	}
	if len(v.Problems) == 0 && sum(v.entries) != v.seal.Sum {
		v.problem("moved: the lines are in another order")
	}
}
