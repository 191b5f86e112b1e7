package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync/atomic"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/edn"
)

// A Plan is a program as data. It is immutable and safe for concurrent use.
type Plan struct {
	id     string
	nodes  []*node
	size   int     // number of nodes, including all bodies
	depth  int     // nesting depth; 1 without bodies
	stated bool    // the plan declares its inputs
	inputs []input // declared inputs, possibly none

	// faults are the findings about the plan's form.
	faults stone.Findings

	text   []byte // canonical text; nil if the form has faults
	digest string
	last   atomic.Pointer[compiler] // result of the last compilation; see compiled
}

// node is one node of a plan. Fields are zero if its op does not use them.
type node struct {
	op   string
	id   string
	as   string
	when *guard
	at   *place

	value       *template // template in input, value, over, on or question
	context     *template
	constraints *template
	spec        call.Spec // for a call, tool or apply
	pin         *slotRef  // the slot of :cap/id
	candidates  []handle  // candidates of the call, if some of them are slots
	program     *slotRef  // for an apply: slot of the plan to apply
	bodies      []body    // bodies of a composite
	until       *guard
	max         int
	loss        loss // for a fan-out
	choices     []string
}

// asks reports whether the node becomes a call of package call.
func (n *node) asks() bool { return n.op == "call" || n.op == "tool" || n.op == "apply" }

// loss defines how many lanes of a fan-out may fail. The zero value means all but one.
type loss struct {
	all        bool
	quorum     int
	allowEmpty bool // for a map
}

// body is a sequence of nodes: a body, a lane or a branch.
type body struct {
	key   string // for a branch: value that selects it
	at    *place
	nodes []*node
}

// Read parses a plan in EDN or JSON. If data is neither, is longer than 8 MiB, or is nested more than 512 deep, Read returns a
// *stone.Invalid. It returns no error for other faults in the plan: Check reports these as findings, and Ashlar rejects a plan that
// has any.
func Read(data []byte) (*Plan, error) { return read(data, maxNodes) }

// maxNodes is the maximum number of nodes that Read parses. It only counts further nodes, and the compiler rejects a plan that has
// them.
const maxNodes = 100_000

func read(data []byte, most int) (*Plan, error) {
	v, err := edn.ReadEither(data, edn.Limits{})
	if err != nil {
		fault := stone.Finding{Type: badSyntax, Ashlar: "plan", Message: err.Error()}
		return nil, &stone.Invalid{Findings: stone.Findings{fault}}
	}
	r := &reading{most: most}
	p := r.plan(v)
	p.faults = r.findings
	if len(p.faults) == 0 {
		if p.text, err = p.print(false, len(data)); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(p.text)
		p.digest = hex.EncodeToString(sum[:])
	}
	return p, nil
}

// ID returns the plan's ID, or "" if it has none.
func (p *Plan) ID() string { return p.id }

// Nodes returns the number of nodes in the plan, including all bodies.
func (p *Plan) Nodes() int { return p.size }

// Digest returns the SHA-256, in hexadecimal, of the plan's canonical text. The digest does not depend on the notation, on the
// order of fields, or on fields that are set to their default. Digest returns "" if the form of the plan has faults.
func (p *Plan) Digest() string { return p.digest }

// String returns the canonical text of the plan, which is EDN on one line, or "" if the form of the plan has faults.
func (p *Plan) String() string { return string(p.text) }

// EDN returns the plan as EDN with line breaks and indents. It returns an error if the form of the plan has faults.
func (p *Plan) EDN() ([]byte, error) {
	if p.text == nil {
		return nil, p.faults.Err()
	}
	v, err := edn.Read(p.text, edn.Limits{Bytes: 1 << 30, Depth: 10_000})
	if err != nil {
		return nil, err
	}
	return edn.Format(v), nil
}

// JSON returns the plan as JSON on one line. It returns an error if the form of the plan has faults, or if some of its data cannot
// be written in JSON: a string key "slot/id" and, in an emit, a string ":x" would be read as slots.
func (p *Plan) JSON() ([]byte, error) {
	if p.text == nil {
		return nil, p.faults.Err()
	}
	return p.print(true, len(p.text))
}

var errSlot = errors.New("data looks like a slot, and JSON cannot distinguish the two: put it into a slot of its own, given with the input")
