// Package kinds describes kinds of capabilities to package cli/internal/config, which reads configurations
// including the kinds that a program links. For any other kind it names the part to add.
//
// Kinds with large libraries are parts of a program: call/cel, tool/mcp, x/acp/harness, x/solve/sat, x/solve/uci. So a program
// links only the kinds that its main function names.
package kinds
