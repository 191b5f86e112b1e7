// Package kinds describes kinds of capabilities for package cli/internal/config, which reads configurations with the kinds that a
// program links. For any other kind it names the part to add.
//
// Kinds with large libraries are parts of a program: x/cel, x/mcp, x/acp/harness, x/solve/sat, x/solve/uci. A program
// therefore links only the kinds that its main function names.
package kinds
