// Package kinds holds the kinds of capabilities that a program links.
//
// Kinds with large libraries register themselves when their packages are imported, as
// drivers of databases do: call/cel, call/mcp, call/sat, call/uci. So a program links
// only the kinds that it needs. Package cli/internal/config reads configurations with the
// registered kinds. For any other kind it names the missing import.
package kinds
