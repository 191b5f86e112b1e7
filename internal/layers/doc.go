// Package layers contains tests of the whole module: the allowed imports, a package
// comment for every package, the size of the vocabulary of the root package, and the
// licences of the modules in the command. It has no other code.
package layers
