// Package sat is a capability that decides whether a formula of propositional logic
// can be made true, and how. A formula comes as clauses and groups over names, of
// which "-" in front makes the negation:
//
//	{"clauses": [["a", "-b"], ["b", "c"]],
//	 "exactly-one": [["a", "b", "c"]], "at-most-one": [["a", "c"]], "at-least-one": [["b", "c"]]}
//
// or as a text in DIMACS format, whose variables are called by their numbers:
//
//	{"dimacs": "p cnf 2 2\n1 -2 0\n2 0\n"}
//
// The answer is {"satisfiable": true, "model": {"a": true, "b": false, …}} or
// {"satisfiable": false}. A model is tried on the formula before it is answered, by
// code that shares nothing with the solver.
//
// The solver (gophersat) has no way to be told to stop. It is stopped all the same,
// where it reports what it has learned, so that a call that nobody waits for any
// more uses no processor. It solves one formula at a time; others wait for their
// turn, so give the capability a timeout where formulas come from anywhere.
//
// Importing the package makes the solver sat
// known to configurations.
package sat
