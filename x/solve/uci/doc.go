// Package uci is a capability that plays chess with an engine that speaks the Universal
// Chess Interface. It also has a check that a move is legal, which needs no engine.
//
//	{"fen": "…", "movetime-ms": 500, "want": {"pv": 5, "eval": true}}
//
// is answered with the best move that the engine finds, in the notation of the protocol
// and in standard notation (SAN). It can also have the expected line and the evaluation
// for the side to move, in hundredths of a pawn or in moves to mate.
//
//	{"move": "e2e4", "san": "e4", "pv": ["e2e4", "e7e5"], "eval": {"cp": 31, "depth": 14}}
//
// Without fen it is the first move of a game. The search is limited by movetime-ms, depth or both.
//
// Each call starts a new engine: the memory of an engine would change its next answers.
// The engine is stopped with all its child processes.
//
// A position without a legal move fails with "chess/game-over"; an engine that ends or breaks the protocol fails with
// "chess/engine".
//
// Importing the package registers the kind chess and the check legal-move for
// configurations.
package uci
