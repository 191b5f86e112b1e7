// Package uci is a capability that plays chess with any engine that speaks the
// Universal Chess Interface, and a check that a move is legal, which needs none.
//
//	{"fen": "…", "movetime-ms": 500, "want": {"pv": 5, "eval": true}}
//
// is answered with the best move that the engine finds, in the notation of the
// protocol and in that of people, the line that it expects, and how it judges the
// position from the side that moves: in hundredths of a pawn, or as moves to mate.
//
//	{"move": "e2e4", "san": "e4", "pv": ["e2e4", "e7e5"], "eval": {"cp": 31, "depth": 14}}
//
// Without fen it is the first move of a game. The search is bounded by movetime-ms,
// depth or both.
//
// Each call starts the engine anew: what one call leaves in the memory of an engine
// changes the answers of the next. The engine is ended with all that it started.
//
// Importing the package makes the kind chess and the check legal-move
// known to configurations.
package uci
