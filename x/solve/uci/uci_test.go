package uci

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/test/eventtest"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/stonetest"
)

func stockfish(t *testing.T) string {
	t.Helper()
	return need.Program(t, "/usr/games/stockfish")
}

// engine is a program that answers each line as the script says.
func engine(t *testing.T, script string) string {
	path := filepath.Join(t.TempDir(), "engine")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const polite = `while read line; do case "$line" in
uci) echo "id name x"; echo uciok;;
isready) echo readyok;;
go*) echo "info depth 3 score cp 31 nodes 7 pv e2e4 e7e5 g1f3"; echo "info depth 4 score cp 99 upperbound pv a2a3"; echo "info string cp 5 pv h2h4"; MOVE;;
quit) exit 0;;
esac; done
`

// ask asks an engine. An engine that does not answer within a minute is an error.
func ask(t *testing.T, c Config, in string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reply, err := New(call.Metadata{}, c).Invoke(ctx, &call.Request{Input: call.JSON(in)})
	if err != nil {
		return "", err
	}
	return string(reply.Out), nil
}

// What the engine has found so far is reported.
func TestProgress(t *testing.T) {
	var r eventtest.Recorder
	ctx := eventtest.Context(t.Context(), &r)
	path := engine(t, strings.ReplaceAll(polite, "MOVE", "echo bestmove e2e4"))
	if _, err := New(call.Metadata{}, Config{Command: []string{path}}).Invoke(ctx, &call.Request{Input: call.JSON(`{}`)}); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range r.Events() {
		if d, ok := e.Data.(event.Progress); ok {
			said = append(said, d.Message)
		}
	}
	if want := []string{"depth 3: e2e4 e7e5 g1f3"}; !slices.Equal(said, want) {
		t.Errorf("reported %q, want %q", said, want)
	}
}

func TestDialogue(t *testing.T) {
	for _, test := range []struct{ move, in, want string }{
		{"echo bestmove e2e4 ponder e7e5", `{}`, `{"move":"e2e4","san":"e4"}`},
		{"echo bestmove e2e4", `{"want":{"pv":2,"eval":true}}`, `{"move":"e2e4","san":"e4","pv":["e2e4","e7e5"],"eval":{"cp":31,"depth":3}}`},
		{`printf "info score mate -2 pv g1f3\nbestmo"; printf "ve g1f3\n"`, `{"want":{"pv":9,"eval":true}}`, `{"move":"g1f3","san":"Nf3","pv":["g1f3"],"eval":{"mate":-2,"depth":0}}`},
		{"echo bestmove a7a8q", `{"fen":"7k/P7/8/8/8/8/8/7K w - - 0 1"}`, `{"move":"a7a8q","san":"a8=Q+"}`},
		{"echo bestmove e1g1; sleep 100", `{"fen":"4k3/8/8/8/8/8/8/4K2R w K - 0 1"}`, `{"move":"e1g1","san":"O-O"}`},
		{"trap '' TERM; echo bestmove e2e4; while true; do sleep 1; done", `{}`, `{"move":"e2e4","san":"e4"}`},
		{"echo bestmove e2e5", `{}`, `chess/engine: the engine's answer: "e2e5" is not a legal move`},
		{"echo bestmove '(none)'", `{}`, `chess/engine: `},
		{"echo bestmove", `{}`, `chess/engine: the engine sends bestmove without a move`},
		{"exit 3", `{}`, `chess/engine: the engine ended without a move (exit status 3)`},
		{"kill -9 $$", `{}`, `chess/engine: the engine ended without a move (signal: killed)`},
		{"head -c 3000000 /dev/zero", `{}`, `chess/engine: the engine wrote a line of more than`},
	} {
		c := Config{Command: []string{engine(t, strings.ReplaceAll(polite, "MOVE", test.move))}}
		got, err := ask(t, c, test.in)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %s, want %s", test.move, got, test.want)
		}
	}
}

func TestInput(t *testing.T) {
	c := Config{Command: []string{engine(t, strings.ReplaceAll(polite, "MOVE", "echo bestmove e2e4"))}}
	for _, test := range []struct{ in, want string }{
		{`{"fen":"x"}`, `invalid-request: the position "x" is not valid FEN`},
		{`{"fen":1}`, `invalid-request: `},
		{`{"depth":-1}`, `invalid-request: movetime-ms`},
		{`{"fen":"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\nquit"}`, `invalid-request: `},
		{`{"fen":"8/8/8/8/8/8/8/8 w - - 0 1"}`, `invalid-request: `},
		{`{"fen":"kk6/8/8/8/8/8/8/K7 w - - 0 1"}`, `invalid-request: `},
		{`{"fen":"4k3/8/8/8/8/8/8/4RK2 w - - 0 1"}`, `invalid-request: `},
		{`{"fen":"P3k3/8/8/8/8/8/8/5K2 w - - 0 1"}`, `invalid-request: `},
		{`{"fen":"7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"}`, `chess/game-over: there is no legal move: Stalemate`},
		{`{"fen":"7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"}`, `chess/game-over: there is no legal move: Checkmate`},
	} {
		if _, err := ask(t, c, test.in); err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", test.in, err, test.want)
		}
	}
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{}, "runtime/unavailable: uci: no engine"},
		{Config{Command: []string{"stockfish"}}, "runtime/unavailable: the program \"stockfish\" is not an absolute path"},
		{Config{Command: []string{"/bin/true"}, Scope: call.Scope{Net: call.Net{}}}, "runtime/unavailable: an engine cannot be limited to directories and servers: leave fs and net out of its scope"},
		{Config{Command: []string{"/bin/true"}, Scope: call.Scope{Process: call.Process{}}}, "runtime/unavailable: the program /bin/true is not in scope"},
		{Config{Command: []string{"/nonexistent/engine"}}, "runtime/unavailable: the engine cannot be started"},
		{Config{Command: []string{"/bin/true"}, Options: map[string]string{"Hash": "1\nquit"}}, "runtime/unavailable: uci: option"},
		{Config{Command: []string{"/bin/true"}}, "chess/engine: the engine ended without a move"},
	} {
		if _, err := ask(t, test.config, `{}`); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %s", test.config, err, test.want)
		}
	}
}

func TestCapability(t *testing.T) {
	c := Config{Command: []string{engine(t, strings.ReplaceAll(polite, "MOVE", `case "$line" in *100000*) sleep 100;; esac; echo bestmove e2e4`))}}
	stonetest.TestCapability(t, stonetest.Capability{
		Make: func(*testing.T) call.Capability { return New(call.Metadata{}, c) },
		OK:   &call.Request{Input: call.JSON(`{"depth":1}`)},
		Slow: &call.Request{Input: call.JSON(`{"movetime-ms":100000}`)},
	})
}

func TestStockfish(t *testing.T) {
	need.Time(t)
	c := Config{Command: []string{stockfish(t)}, Options: map[string]string{"Hash": "16"}}
	stonetest.TestCapability(t, stonetest.Capability{
		Make: func(*testing.T) call.Capability { return New(call.Metadata{}, c) },
		OK:   &call.Request{Input: call.JSON(`{"fen":"6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1","depth":5,"want":{"pv":1,"eval":true}}`)},
		Slow: &call.Request{Input: call.JSON(`{"movetime-ms":100000}`)},
	})
	got, err := ask(t, c, `{"fen":"6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1","depth":5,"want":{"pv":3,"eval":true}}`)
	var out output
	if err != nil || json.Unmarshal([]byte(got), &out) != nil || out.SAN != "Ra8#" || out.Eval == nil || out.Eval.Mate == nil || *out.Eval.Mate != 1 || len(out.PV) != 1 {
		t.Errorf("%s, %v; want mate in one by Ra8", got, err)
	}
	got, err = ask(t, c, `{"movetime-ms":50}`)
	if check := LegalMove(t.Context(), call.Subject{Request: &call.Request{Input: call.JSON(`{}`)}, Out: call.JSON(got)}); err != nil || check != nil {
		t.Errorf("%s, %v, %v", got, err, check)
	}
}

func TestLegalMove(t *testing.T) {
	for _, test := range []struct {
		in, out string
		legal   bool
	}{
		{`{}`, `{"move":"e2e4"}`, true},
		{`{}`, `{"move":"Nf3"}`, true},
		{`{}`, `{"move":"e2e5"}`, false},
		{`{}`, `{"move":""}`, false},
		{`{}`, `{"move":"♞"}`, false},
		{`{}`, `{"move":4}`, false},
		{`{}`, `{"text":"e2e4"}`, false},
		{`{}`, `null`, false},
		{`{"fen":"nonsense"}`, `{"move":"e2e4"}`, false},
		{`{"fen":"4k3/8/8/8/4r3/8/4B3/4K3 w - - 0 1"}`, `{"move":"e2d3"}`, false}, // pinned
		{`{"fen":"rnbqkbnr/ppp1pppp/8/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 1"}`, `{"move":"e5d6"}`, true},
		{`{"fen":"7k/P7/8/8/8/8/8/7K w - - 0 1"}`, `{"move":"a7a8"}`, false},
		{`{"fen":"7k/P7/8/8/8/8/8/7K w - - 0 1"}`, `{"move":"a8=N"}`, true},
	} {
		err := LegalMove(context.Background(), call.Subject{Request: &call.Request{Input: call.JSON(test.in)}, Out: call.JSON(test.out)})
		if (err == nil) != test.legal {
			t.Errorf("%s in %s: %v, want legal %v", test.out, test.in, err, test.legal)
		}
	}
}

// TestMovesAgree compares the moves that are legal here with an engine's legal moves.
func TestMovesAgree(t *testing.T) {
	path := stockfish(t)
	for _, fen := range []string{
		start,
		"r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
		"8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
		"r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1",
		"rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
	} {
		p, err := readPosition(fen)
		if err != nil {
			t.Error(err)
			continue
		}
		var ours []string
		for m := range p.legal {
			ours = append(ours, m)
		}
		slices.Sort(ours)
		if theirs := perft(t, path, fen); !slices.Equal(ours, theirs) {
			t.Errorf("%s: %v, stockfish has %v", fen, ours, theirs)
		}
	}
}

func TestErrorsAreTyped(t *testing.T) {
	_, err := ask(t, Config{}, `{}`)
	if typed := new(call.Error); !errors.As(err, &typed) || typed.Type != reasons.Unavailable {
		t.Error(err)
	}
}

func perft(t *testing.T, path, fen string) []string {
	cmd := exec.Command(path)
	cmd.Stdin = strings.NewReader("position fen " + fen + "\ngo perft 1\nquit\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var moves []string
	for line := range strings.Lines(string(out)) {
		if move, count, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && count == "1" && len(move) <= 5 {
			moves = append(moves, move)
		}
	}
	slices.Sort(moves)
	return moves
}
