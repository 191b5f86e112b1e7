// Package layers contains tests of the whole module: the allowed imports, a package
// comment for every package, and the size of the vocabulary of the root package. It has
// no other code.
package layers
