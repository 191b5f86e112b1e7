package stone

import (
	"iter"
	"math/big"
	"slices"
)

// Names returns the name of every ashlar of the tree, parents first, each place
// once; what has no name is left out. Compare it with what a package declares to
// find an ashlar that nobody wired in.
func Names(p Ashlar) []string {
	var out []string
	p.each(func(s *spec) {
		if s.name != "" && s.form != reduceForm && s != noAshlar { // a reduce has the name of its body
			out = append(out, s.name)
		}
	})
	return out
}

// Paths ranges over the ways in which a run can go through the leaves of p, each
// as a list of their names. A match and a parallel have one for each branch and
// lane, a rescue one without and one with its heal; a loop and a map have those
// of their body, once; a scoped ashlar has those that its walk rule says. There
// can be very many: stop when you have enough, and ask CountPaths.
func Paths(p Ashlar) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		follow(p, nil, func(path []string) bool { return yield(slices.Clone(path)) })
	}
}

// then is what comes after a way that was followed; it returns false to stop.
type then func(path []string) bool

// follow calls next with the path extended by each way through a, until it
// returns false.
func follow(a Ashlar, path []string, next then) bool {
	s := a.spec()
	switch s.form {
	case leafForm:
		return next(append(path, s.name))
	case matchForm, parallelForm:
		return followOne(s.children, path, next)
	case rescueForm:
		return follow(s.children[0], path, next) && followAll(s.children, path, next)
	case scopedForm:
		blocks := s.blocks()
		return followBlocks(blocks, path, next)
	}
	return followAll(s.children, path, next)
}

func followOne(children []Ashlar, path []string, next then) bool {
	for _, c := range children {
		if !follow(c, path, next) {
			return false
		}
	}
	return true
}

func followAll(children []Ashlar, path []string, next then) bool {
	if len(children) == 0 {
		return next(path)
	}
	return follow(children[0], path, func(path []string) bool { return followAll(children[1:], path, next) })
}

func followBlocks(blocks []block, path []string, next then) bool {
	if len(blocks) == 0 {
		return next(path)
	}
	rest := func(path []string) bool { return followBlocks(blocks[1:], path, next) }
	switch b := blocks[0]; b.how {
	case exactlyOne, apart:
		return followOne(b.children, path, rest)
	case inOrderOrNot:
		return followAll(b.children, path, rest) && rest(path)
	default:
		return followAll(b.children, path, rest)
	}
}

// CountPaths returns how many paths Paths ranges over, without going through
// them.
func CountPaths(p Ashlar) *big.Int {
	return make(counts).paths(p)
}

// counts are the paths of ashlars, each counted once wherever it stands.
type counts map[*spec]*big.Int

func (c counts) paths(a Ashlar) *big.Int {
	s := a.spec()
	if s.form == leafForm {
		return big.NewInt(1)
	}
	if known := c[s]; known != nil {
		return known
	}
	var n *big.Int
	switch s.form {
	case matchForm, parallelForm:
		n = c.sum(s.children)
	case rescueForm:
		n = new(big.Int).Add(c.paths(s.children[0]), c.product(s.children))
	case scopedForm:
		n = c.blocks(s)
	default:
		n = c.product(s.children)
	}
	c[s] = n
	return n
}

func (c counts) blocks(s *spec) *big.Int {
	n := big.NewInt(1)
	blocks := s.blocks()
	for _, b := range blocks {
		switch b.how {
		case exactlyOne, apart:
			n.Mul(n, c.sum(b.children))
		case inOrderOrNot:
			n.Mul(n, new(big.Int).Add(c.product(b.children), big.NewInt(1)))
		default:
			n.Mul(n, c.product(b.children))
		}
	}
	return n
}

func (c counts) sum(children []Ashlar) *big.Int {
	n := new(big.Int)
	for _, a := range children {
		n.Add(n, c.paths(a))
	}
	return n
}

func (c counts) product(children []Ashlar) *big.Int {
	n := big.NewInt(1)
	for _, a := range children {
		n.Mul(n, c.paths(a))
	}
	return n
}
