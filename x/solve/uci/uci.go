package uci

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/corentings/chess/v2"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/reasons"
)

// Failure types in addition to package call's.
const (
	gameOver     = "chess/game-over" // the position has no legal move
	engineFailed = "chess/engine"    // the engine exited or violated the protocol
)

// Config configures the engine. Command is required: without it, calls fail with "runtime/unavailable".
type Config struct {
	// Command is the absolute path of the engine, followed by its arguments.
	Command []string
	// Options are the UCI options that are set before the search, such as "Hash": "64".
	Options map[string]string
	// MoveTime is the search time if the input sets no limit. Zero means one second.
	MoveTime time.Duration
	// Scope must list the engine in its Process. FS and Net must be nil, because an engine is not confined.
	Scope call.Scope
}

// Check returns an error if the configuration is invalid.
func (c Config) Check() error {
	if len(c.Command) == 0 {
		return errors.New("uci: no engine: set Command to the absolute path of one")
	}
	if c.MoveTime < 0 {
		return errors.New("uci: MoveTime is negative: want zero for the default")
	}
	for name, value := range c.Options {
		if name == "" || strings.ContainsAny(name+value, "\r\n") {
			return fmt.Errorf("uci: option %q = %q: a name is needed, and one line each", name, value)
		}
	}
	return errors.Join(c.Scope.Check(), c.Scope.Unconfined("an engine", c.Command[0]))
}

// New returns a capability that plays chess with the configured engine. Empty fields of m have defaults: the id chess/engine, the
// kind chess and the intent chess/best-move. The capability needs the effect process.
func New(m call.Metadata, c Config) call.Capability {
	m = m.Needing(effect.Process)
	m.ID, m.Kind = cmp.Or(m.ID, "chess/engine"), cmp.Or(m.Kind, "chess")
	if m.Intents == nil {
		m.Intents = []string{"chess/best-move"}
	}
	invalid := c.Check()
	c.MoveTime = cmp.Or(c.MoveTime, time.Second)
	return call.Capability{Metadata: m, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		if invalid != nil {
			return nil, &call.Error{Type: reasons.Unavailable, Message: invalid.Error(), Cause: invalid}
		}
		return c.invoke(ctx, req)
	}}
}

type input struct {
	FEN        string `json:"fen"`
	MoveTimeMS int    `json:"movetime-ms"`
	Depth      int    `json:"depth"`
	Want       struct {
		PV   int  `json:"pv"`
		Eval bool `json:"eval"`
	} `json:"want"`
}

type output struct {
	Move string   `json:"move"`
	SAN  string   `json:"san"`
	PV   []string `json:"pv,omitempty"`
	Eval *eval    `json:"eval,omitempty"`
}

// An eval is the engine's evaluation of the position: either CP or Mate is set.
type eval struct {
	CP    *int `json:"cp,omitempty"`
	Mate  *int `json:"mate,omitempty"` // number of moves to mate; negative if the side to move is mated
	Depth int  `json:"depth"`
}

const maxMillis, maxDepth = 3_600_000, 200

func (c Config) invoke(ctx context.Context, req *call.Request) (*call.Reply, error) {
	var in input
	if err := json.Unmarshal(req.Input, &in); err != nil {
		return nil, &call.Error{Type: reasons.InvalidRequest, Where: "input", Message: "the input is not a question about a position: " + err.Error(), Cause: err}
	}
	if in.MoveTimeMS < 0 || in.MoveTimeMS > maxMillis || in.Depth < 0 || in.Depth > maxDepth || in.Want.PV < 0 {
		return nil, &call.Error{Type: reasons.InvalidRequest, Where: "input",
			Message: fmt.Sprintf("movetime-ms must be within %d, depth within %d, want.pv not negative", maxMillis, maxDepth)}
	}
	p, err := readPosition(in.FEN)
	if err != nil {
		return nil, &call.Error{Type: reasons.InvalidRequest, Where: "input.fen", Message: err.Error(), Cause: err}
	}
	if len(p.legal) == 0 {
		return nil, &call.Error{Type: gameOver, Where: "input.fen", Message: "there is no legal move: " + p.Status().String()}
	}
	found, err := c.search(ctx, p, in)
	if err != nil {
		return nil, err
	}
	move, err := p.move(found.move)
	if err != nil {
		return nil, &call.Error{Type: engineFailed, Message: "the engine's answer: " + err.Error(), Cause: err}
	}
	out := output{Move: move.String(), SAN: chess.AlgebraicNotation{}.Encode(p.Position, &move)}
	out.PV = found.pv[:min(in.Want.PV, len(found.pv))]
	if in.Want.Eval {
		out.Eval = found.eval
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return &call.Reply{Type: call.Value, Out: text}, nil
}
