package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/sandbox"
	"github.com/stonelayer/stone/schema"
)

func (s scorerSpec) schema() (Scorer, error) {
	data, err := os.ReadFile(s.argument)
	if err != nil {
		return Scorer{}, err
	}
	want, err := schema.Parse(data)
	if err != nil {
		return Scorer{}, fmt.Errorf("%s: %w", s.argument, err)
	}
	s.argument = string(data) // the argument is part of the scorer's version
	return s.leafOf(func(ctx context.Context, c Case) (Score, error) {
		got, err := s.got(c)
		if err != nil {
			return Score{Reason: err.Error()}, nil
		}
		err = want.Validate(ctx, parsed(got))
		if invalid, ok := errors.AsType[*schema.ValidationError](err); ok {
			return Score{Reason: text.Cut(invalid.Error(), maxReason)}, nil
		}
		return Score{Value: 1}, err
	}), nil
}

// cel returns a scorer whose score is the value of an expression: true, false or a number.
func (s scorerSpec) cel(app *call.Applicator) (Scorer, error) {
	language, err := kinds.Language(app)
	if err != nil {
		return Scorer{}, err
	}
	program, err := language.Formula(s.argument, []string{"input", "output", "expected", "node", "usage"})
	if err != nil {
		return Scorer{}, err
	}
	var streak fault.Streak
	scorer := s.leafOf(func(ctx context.Context, c Case) (Score, error) {
		got, err := s.got(c)
		if err != nil {
			return Score{Reason: err.Error()}, nil
		}
		node, err := json.Marshal(c.Nodes)
		if err != nil {
			return Score{}, err
		}
		usage, err := json.Marshal(c.Usage)
		if err != nil {
			return Score{}, err
		}
		variables := map[string]json.RawMessage{"input": c.Input, "output": got, "expected": c.Expected, "node": node, "usage": usage}
		if c.Expected == nil {
			variables["expected"] = json.RawMessage("null")
		}
		found, err := program.Eval(ctx, variables)
		if err != nil && ctx.Err() == nil {
			if err = (unjudged{err}); streak.Add(err) {
				err = &call.Error{Type: reasons.CheckBroken, Message: fmt.Sprintf("the scorer %s cannot score any answer: %v", s.name, err)}
			}
			return Score{}, err
		}
		streak.Add(err)
		if err != nil {
			return Score{}, err
		}
		return scoreOf(found)
	})
	scorer.fits = program.Fits
	return scorer, nil
}

// unjudged is the error of an expression that could not be evaluated for an answer.
type unjudged struct{ error }

// Broken returns false, because an expression that fails for one answer may work for another answer.
func (unjudged) Broken() bool { return false }

// scoreOf converts true, false or a number to a score.
func scoreOf(v json.RawMessage) (s Score, err error) {
	switch string(v) {
	case "true":
		return Score{Value: 1}, nil
	case "false":
		return Score{}, nil
	}
	if err := json.Unmarshal(v, &s.Value); err != nil || string(v) == "null" {
		return s, fmt.Errorf("got %s: want true, false or a number", shown(v))
	}
	return s, nil
}

const (
	commandTime   = time.Minute
	commandOutput = 64 << 10
)

// command returns a scorer that runs a program. The program reads the case as a JSON object from standard input. It has no
// network access and can read only the files in its directory.
func (s scorerSpec) command() (Scorer, error) {
	file, err := filepath.Abs(s.argument)
	if err != nil {
		return Scorer{}, err
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return Scorer{}, err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return Scorer{}, fmt.Errorf("%s is not a program", s.argument)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return Scorer{}, err
	}
	s.argument = string(data) // the argument is part of the scorer's version
	policy := sandbox.Policy{ReadOnly: []string{filepath.Dir(file)}}
	return s.leafOf(func(ctx context.Context, c Case) (Score, error) {
		got, err := s.got(c)
		if err != nil {
			return Score{Reason: err.Error()}, nil
		}
		input, err := json.Marshal(map[string]any{"id": c.ID, "input": c.Input, "output": got, "expected": c.Expected, "nodes": c.Nodes})
		if err != nil {
			return Score{}, err
		}
		ctx, cancel := context.WithTimeout(ctx, commandTime)
		defer cancel()
		cmd := sandbox.Command(ctx, policy, file)
		out := sandbox.Buffer{Max: commandOutput}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &out
		return printed(cmd.Run(), out.String())
	}, stone.Reusable(), needsProcess), nil
}

// printed returns the score that a program has printed on its last line, as a number or as {"value": …, "reason": …}. If the
// program has printed none, the score depends on the exit status.
func printed(err error, out string) (s Score, _ error) {
	last := strings.TrimSpace(out)
	last = strings.TrimSpace(last[strings.LastIndexByte(last, '\n')+1:])
	var exit *sandbox.ExitError
	switch {
	case errors.As(err, &exit) && exit.Code > 0:
		return Score{Reason: text.Cut(fmt.Sprintf("status %d: %s", exit.Code, text.Line(last)), maxReason)}, nil
	case err != nil:
		return s, err
	}
	if json.Unmarshal([]byte(last), &s.Value) == nil {
		return s, nil
	}
	if strings.HasPrefix(last, "{") && json.Unmarshal([]byte(last), &s) == nil {
		s.Verdict = ""
		return s, nil
	}
	return Score{Value: 1}, nil
}
