package tree

import (
	"iter"
	"math/big"
	"slices"

	"github.com/stonelayer/stone"
)

// Paths ranges over the ways in which a run can go through the leaves of p, each
// as a list of their names. A match and a parallel have one for each branch and
// lane, a rescue one without and one with its heal; a loop and a map have those
// of their body, once; a scoped ashlar has those that its walk says. There
// can be very many: stop when you have enough, and ask CountPaths.
func Paths(p stone.Ashlar) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		follow(p, nil, func(path []string) bool { return yield(slices.Clone(path)) })
	}
}

// then is what comes after a way that was followed; it returns false to stop.
type then func(path []string) bool

// follow calls next with the path extended by each way through a, until it
// returns false.
func follow(a stone.Ashlar, path []string, next then) bool {
	switch children := a.Children(); a.Form() {
	case "leaf":
		return next(append(path, a.Name()))
	case "match", "parallel":
		return followOne(children, path, next)
	case "rescue":
		return follow(children[0], path, next) && followAll(children, path, next)
	case "scoped":
		return followParts(parts(a), path, next)
	default:
		return followAll(children, path, next)
	}
}

func followOne(children []stone.Ashlar, path []string, next then) bool {
	for _, c := range children {
		if !follow(c, path, next) {
			return false
		}
	}
	return true
}

func followAll(children []stone.Ashlar, path []string, next then) bool {
	if len(children) == 0 {
		return next(path)
	}
	return follow(children[0], path, func(path []string) bool { return followAll(children[1:], path, next) })
}

// part is one thing that a walk says.
type part struct {
	way      string
	children []stone.Ashlar
}

func parts(a stone.Ashlar) (out []part) {
	for way, children := range a.Walk() {
		out = append(out, part{way, children})
	}
	return out
}

func followParts(parts []part, path []string, next then) bool {
	if len(parts) == 0 {
		return next(path)
	}
	rest := func(path []string) bool { return followParts(parts[1:], path, next) }
	switch p := parts[0]; p.way {
	case "one-of", "lanes":
		return followOne(p.children, path, rest)
	case "perhaps":
		return followAll(p.children, path, rest) && rest(path)
	default:
		return followAll(p.children, path, rest)
	}
}

// CountPaths returns how many paths Paths ranges over, without going through them.
func CountPaths(p stone.Ashlar) *big.Int {
	return make(counts).paths(p)
}

// counts are the paths of ashlars, each counted once wherever it stands.
type counts map[stone.Ashlar]*big.Int

func (c counts) paths(a stone.Ashlar) *big.Int {
	if a.Form() == "leaf" {
		return big.NewInt(1)
	}
	if known := c[a]; known != nil {
		return known
	}
	var n *big.Int
	switch children := a.Children(); a.Form() {
	case "match", "parallel":
		n = c.sum(children)
	case "rescue":
		n = new(big.Int).Add(c.paths(children[0]), c.product(children))
	case "scoped":
		n = c.parts(parts(a))
	default:
		n = c.product(children)
	}
	c[a] = n
	return n
}

func (c counts) parts(parts []part) *big.Int {
	n := big.NewInt(1)
	for _, p := range parts {
		switch p.way {
		case "one-of", "lanes":
			n.Mul(n, c.sum(p.children))
		case "perhaps":
			n.Mul(n, new(big.Int).Add(c.product(p.children), big.NewInt(1)))
		default:
			n.Mul(n, c.product(p.children))
		}
	}
	return n
}

func (c counts) sum(children []stone.Ashlar) *big.Int {
	n := new(big.Int)
	for _, a := range children {
		n.Add(n, c.paths(a))
	}
	return n
}

func (c counts) product(children []stone.Ashlar) *big.Int {
	n := big.NewInt(1)
	for _, a := range children {
		n.Mul(n, c.paths(a))
	}
	return n
}
