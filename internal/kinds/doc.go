// Package kinds describes the kinds of capabilities that a program links. Package cli/internal/config uses the descriptions
// to read configurations. For a kind that is not linked, package kinds names the part to add to the program.
//
// Kinds that need large libraries are parts of a program: x/cel, x/mcp, x/acp/harness, x/solve/sat, x/solve/uci. A program
// therefore links only those kinds that its main function lists.
package kinds
