// Package layers contains only tests, which check the whole module: allowed imports, a comment for every package, the number of
// names that each package exports, and the licences of the modules in the command.
package layers
