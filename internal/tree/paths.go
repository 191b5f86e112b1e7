package tree

import (
	"iter"
	"math/big"
	"slices"

	"github.com/stonelayer/stone"
)

// Paths yields the paths that a run can take through the leaves of p. Each path is a list of leaf names. There is one path for
// each branch of a match and for each lane of a parallel. A rescue has paths with and without its heal. A loop and a map have the
// paths of their body, which count once. A scoped ashlar has the paths of its walk. The number of paths can be very large: see
// CountPaths.
func Paths(p stone.Ashlar) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		follow(p, nil, func(path []string) bool { return yield(slices.Clone(path)) })
	}
}

// then continues after the path so far. It returns false to stop.
type then func(path []string) bool

// follow calls next with the path extended by each path through a, until next returns
// false.
func follow(a stone.Ashlar, path []string, next then) bool {
	if Hidden(a) {
		return next(path)
	}
	switch children := a.Children(); a.Form() {
	case "leaf":
		return next(append(path, a.Name()))
	case "match", "parallel":
		return followOne(children, path, next)
	case "rescue":
		return follow(children[0], path, next) && (Hidden(children[1]) || followAll(children, path, next))
	case "scoped":
		return followParts(parts(a), path, next)
	default:
		return followAll(children, path, next)
	}
}

func followOne(children []stone.Ashlar, path []string, next then) bool {
	for _, c := range distinct(children) {
		if !follow(c, path, next) {
			return false
		}
	}
	return true
}

// Hidden reports whether a and everything below it is glue, which is not shown.
func Hidden(a stone.Ashlar) bool {
	return a.IsGlue() && !slices.ContainsFunc(a.Children(), func(c stone.Ashlar) bool { return !Hidden(c) })
}

// distinct removes all hidden alternatives except one, because they all have the same path.
func distinct(alternatives []stone.Ashlar) []stone.Ashlar {
	found := false
	return slices.DeleteFunc(slices.Clone(alternatives), func(a stone.Ashlar) bool {
		again := found && Hidden(a)
		found = found || Hidden(a)
		return again
	})
}

func followAll(children []stone.Ashlar, path []string, next then) bool {
	if len(children) == 0 {
		return next(path)
	}
	return follow(children[0], path, func(path []string) bool { return followAll(children[1:], path, next) })
}

// part is a part of a walk.
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

// CountPaths returns the number of paths that Paths yields, without listing them.
func CountPaths(p stone.Ashlar) *big.Int {
	return make(counts).paths(p)
}

// counts caches the number of paths through each ashlar.
type counts map[stone.Ashlar]*big.Int

func (c counts) paths(a stone.Ashlar) *big.Int {
	if a.Form() == "leaf" || Hidden(a) {
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
		n = c.paths(children[0])
		if !Hidden(children[1]) {
			n = new(big.Int).Add(n, c.product(children))
		}
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
	for _, a := range distinct(children) {
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
