// Package layers holds tests of the module as a whole: who may import whom, that
// every package says what it is, and how large the vocabulary of the root package
// may grow. It has no code of its own.
package layers
