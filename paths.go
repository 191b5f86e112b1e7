package stone

import (
	"iter"
	"math/big"
	"slices"
)

// Names returns the name of every ashlar of the tree, parents first, each place
// once. Compare it with what a package declares to find an ashlar that nobody
// wired in.
func Names(p Ashlar) []string {
	var out []string
	p.each(func(s *spec) {
		if s.form != reduceForm { // it has the name of its body
			out = append(out, s.name)
		}
	})
	return out
}

// Paths ranges over the ways in which a run can go through the leaves of p, each
// as a list of their names. A match and a parallel have one for each branch and
// lane, a rescue one without and one with its heal; a loop and a map have those
// of their body, once. There can be very many: stop when you have enough, and
// ask CountPaths.
func Paths(p Ashlar) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		follow(p, nil, func(path []string) bool { return yield(slices.Clone(path)) })
	}
}

// follow calls then with the path extended by each way through a, until it
// returns false.
func follow(a Ashlar, path []string, then func([]string) bool) bool {
	s := a.spec()
	switch s.form {
	case leafForm:
		return then(append(path, s.name))
	case matchForm, parallelForm:
		for _, c := range s.children {
			if !follow(c, path, then) {
				return false
			}
		}
		return true
	case rescueForm:
		if !follow(s.children[0], path, then) {
			return false
		}
	}
	return followAll(s.children, path, then)
}

func followAll(children []Ashlar, path []string, then func([]string) bool) bool {
	if len(children) == 0 {
		return then(path)
	}
	return follow(children[0], path, func(path []string) bool { return followAll(children[1:], path, then) })
}

// CountPaths returns how many paths Paths ranges over.
func CountPaths(p Ashlar) *big.Int {
	s := p.spec()
	count := big.NewInt(1)
	switch s.form {
	case leafForm:
	case matchForm, parallelForm:
		count.SetInt64(0)
		for _, c := range s.children {
			count.Add(count, CountPaths(c))
		}
	case rescueForm:
		body := CountPaths(s.children[0])
		count.Mul(body, CountPaths(s.children[1]))
		count.Add(count, body)
	default:
		for _, c := range s.children {
			count.Mul(count, CountPaths(c))
		}
	}
	return count
}
