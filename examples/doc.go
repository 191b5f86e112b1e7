// Package examples contains the tests that all examples have in common: a run that was interrupted and resumed must end like a
// run without interruption.
package examples
