// Package sat provides a capability that decides whether a formula of propositional logic is satisfiable, and finds a model. A
// formula consists of clauses and of groups of names. A leading "-" negates a name:
//
//	{"clauses": [["a", "-b"], ["b", "c"]],
//	 "exactly-one": [["a", "b", "c"]], "at-most-one": [["a", "c"]], "at-least-one": [["b", "c"]]}
//
// A formula can also be a text in DIMACS format, whose variables are named by their numbers:
//
//	{"dimacs": "p cnf 2 2\n1 -2 0\n2 0\n"}
//
// The answer is {"satisfiable": true, "model": {"a": true, "b": false, …}} or {"satisfiable": false}. Each model is checked
// against the formula by code that is independent of the solver. A formula beyond the limits of [Config] fails with
// "solver/too-large". A formula that is not decided within Conflicts fails with "solver/gave-up".
//
// The solver (gophersat) cannot be cancelled. It is therefore stopped when it reports a learned clause, so that a cancelled call
// does not keep using the processor. Only one formula is solved at a time, and other calls wait, so set a timeout if you do not
// trust the source of the formulas.
//
// Part adds the kind solver/sat to a program.
package sat
