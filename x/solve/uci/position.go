package uci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/corentings/chess/v2"

	"github.com/stonelayer/stone/call"
)

// LegalMove is a check that accepts an answer only if out.move is a legal move, such as "e2e4" or "Nf3", in the position
// input.fen. If the input has no fen, the position is the start of a game.
func LegalMove(_ context.Context, s call.Subject) error {
	var input struct {
		FEN string `json:"fen"`
	}
	if s.Request != nil && len(s.Request.Input) > 0 {
		if err := json.Unmarshal(s.Request.Input, &input); err != nil {
			return fmt.Errorf("the input has no position: %w", err)
		}
	}
	var out struct {
		Move *string `json:"move"`
	}
	if err := json.Unmarshal(s.Out, &out); err != nil || out.Move == nil {
		return errors.New(`the answer has no move: want {"move": "e2e4"}`)
	}
	p, err := readPosition(input.FEN)
	if err != nil {
		return err
	}
	_, err = p.move(*out.Move)
	return err
}

// A position is a board with its legal moves.
type position struct {
	*chess.Position
	legal map[string]chess.Move // legal moves, by their name in the protocol's notation
}

const start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"

// reading is locked while a position is read, because the library reads all positions into the same buffer.
var reading sync.Mutex

// readPosition reads a position in FEN and determines the legal moves. It rejects impossible positions, such as one without a
// king, because these crash engines.
func readPosition(fen string) (p *position, err error) {
	reading.Lock()
	defer reading.Unlock()
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("the position %.100q cannot be read: %v", fen, r)
		}
	}()
	if fen == "" {
		fen = start
	}
	set, err := chess.FEN(fen)
	if err != nil {
		return nil, fmt.Errorf("the position %.100q is not valid FEN: %s", fen, strings.TrimPrefix(err.Error(), "chess: "))
	}
	game := chess.NewGame(set)
	p = &position{game.Position(), map[string]chess.Move{}}
	if err := possible(p.Position); err != nil {
		return nil, fmt.Errorf("the position %.100q is impossible: %w", fen, err)
	}
	for _, m := range p.ValidMoves() {
		p.legal[m.String()] = m
	}
	return p, nil
}

func possible(p *chess.Position) error {
	pieces := map[chess.Piece]int{}
	for square, piece := range p.Board().SquareMap() {
		pieces[piece]++
		if rank := square.Rank(); piece.Type() == chess.Pawn && (rank == chess.Rank1 || rank == chess.Rank8) {
			return errors.New("a pawn is on the first or last rank")
		}
	}
	if pieces[chess.WhiteKing] != 1 || pieces[chess.BlackKing] != 1 {
		return errors.New("each side must have one king")
	}
	for _, m := range p.ValidMoves() {
		if p.Board().Piece(m.S2()).Type() == chess.King {
			return errors.New("illegal position: the side that just moved is still in check")
		}
	}
	return nil
}

// move returns the legal move with the given name in either notation, or an error if there is none.
func (p *position) move(text string) (m chess.Move, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%.20q is not a move: %v", text, r)
		}
	}()
	if m, ok := p.legal[text]; ok {
		return m, nil
	}
	if decoded, err := (chess.AlgebraicNotation{}).Decode(p.Position, text); err == nil {
		if m, ok := p.legal[decoded.String()]; ok {
			return m, nil
		}
	}
	return chess.Move{}, fmt.Errorf("%.20q is not a legal move in %s", text, p)
}
