// Package sat is a capability that decides whether a formula of propositional logic can
// be satisfied, and finds a model. A formula consists of clauses and groups of names. A
// leading "-" negates a name:
//
//	{"clauses": [["a", "-b"], ["b", "c"]],
//	 "exactly-one": [["a", "b", "c"]], "at-most-one": [["a", "c"]], "at-least-one": [["b", "c"]]}
//
// or is a text in DIMACS format, whose variables are named by their numbers:
//
//	{"dimacs": "p cnf 2 2\n1 -2 0\n2 0\n"}
//
// The answer is {"satisfiable": true, "model": {"a": true, "b": false, …}} or
// {"satisfiable": false}. Each model is verified on the formula by code independent of
// the solver. A formula beyond the limits of [Config] fails with "solver/too-large", or with
// "solver/gave-up" if it is not decided within Conflicts.
//
// The solver (gophersat) cannot be cancelled. It is stopped when it reports a learned clause, so that a cancelled call uses no
// processor time. It solves one formula at a time, and others wait for their turn: set a timeout if the formulas are not yours.
//
// Importing the package registers the solver sat for configurations.
package sat
