// Package examples holds the tests that all examples share: a run that is interrupted
// and resumed must end like one that ran through.
package examples
