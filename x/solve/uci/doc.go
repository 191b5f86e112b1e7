// Package uci provides a capability that plays chess with an engine that speaks the Universal Chess Interface. It also provides a
// check whether a move is legal, which needs no engine.
//
//	{"fen": "…", "movetime-ms": 500, "want": {"pv": 5, "eval": true}}
//
// is an input. The answer is the best move that the engine finds, in the protocol's notation and in standard algebraic notation
// (SAN). On request, the answer also contains the expected line, and the evaluation relative to the side to move, in hundredths of
// a pawn or as the number of moves to mate.
//
//	{"move": "e2e4", "san": "e4", "pv": ["e2e4", "e7e5"], "eval": {"cp": 31, "depth": 14}}
//
// Without fen, the position is that at the start of a game. The search is limited by movetime-ms, by depth, or by both.
//
// Each call starts a new engine, because the memory of an engine would affect its next answers. The engine is stopped with all
// its child processes.
//
// A position without legal moves fails with "chess/game-over". If the engine exits or violates the protocol, the call fails with
// "chess/engine".
//
// Part adds the kind chess and the check legal-move to a program.
package uci
