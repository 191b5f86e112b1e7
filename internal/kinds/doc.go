// Package kinds holds the kinds of capabilities that a program links.
//
// Kinds whose libraries are large register themselves when their packages are
// imported, as drivers of databases do: call/cel, call/mcp, call/sat, call/uci. So
// a program that needs none of them pays for none. Package internal/config reads
// configurations with the kinds that are registered, and names the import to add
// for one that is not.
package kinds
