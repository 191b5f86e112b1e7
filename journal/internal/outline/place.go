package outline

import (
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/address"
)

// Place sums up the steps at one place of the pipeline.
type Place struct {
	Path                   string
	Open, Recorded, Failed int
	First                  string // path of the first step
	Visits                 int    // for a loop or fan-out, 1 more than the highest number of a round or lane
	Usage                  budget.Usage
}

// mostPlaces is the maximum number of places. A limit is needed because names of steps may come from data. Further places are
// combined.
const mostPlaces = 1000

// place adds an event to the place of a node.
func (t *Tree) place(n *node, e Event, d delta) {
	if d.fresh > 0 {
		t.visit(e.Path)
	}
	if n.at == nil {
		n.at = t.placeAt(address.Place(e.Path))
	}
	p := n.at
	if p.First == "" {
		p.First = e.Path
	}
	p.Open, p.Recorded, p.Failed = p.Open+d.open, p.Recorded+d.recorded, p.Failed+d.failed
	if e.What != Forgotten {
		p.Usage = sum(p.Usage, e.Usage)
	}
}

// visit counts the rounds and lanes on a path.
func (t *Tree) visit(path string) {
	for at := strings.IndexByte(path, '['); at >= 0; {
		start := strings.LastIndexByte(path[:at], '/') + 1
		end := len(path)
		if n := strings.IndexByte(path[at:], '/'); n >= 0 {
			end = at + n
		}
		if n := address.Parse(path[start:end]).Number(); n >= 0 {
			p := t.placeAt(address.Place(path[:end]))
			p.Visits = max(p.Visits, n+1)
		}
		more := strings.IndexByte(path[end:], '[')
		if more < 0 {
			return
		}
		at = end + more
	}
}

// placeAt returns the place with the path at, or the combined place that includes it.
func (t *Tree) placeAt(at string) *Place {
	if t.places[at] == nil && len(t.places) >= mostPlaces {
		at = address.Parent(at) + "/…"
		if t.places[at] == nil && len(t.places) >= 2*mostPlaces {
			at = "…"
		}
	}
	p := t.places[at]
	if p == nil {
		p = &Place{Path: at}
		t.places[at] = p
	}
	return p
}
