// Package layers tests the whole module: allowed imports, a comment for every package, how many
// names each exports, and the licences of the modules in the command. It has no other code.
package layers
