package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/tool"
)

// noCommands is the reason with which an agent halts if its commands cannot run on this machine.
const noCommands = "commands-refused"

type runInput struct {
	Command string `json:"command" jsonschema:"the command, for /bin/sh"`
	Timeout int    `json:"timeout_seconds,omitempty" jsonschema:"seconds after which it is killed"`
}

// limit returns the time limit that the model has requested, or most if it has requested none. A limit longer than most is an
// error.
func (in runInput) limit(most time.Duration) (time.Duration, error) {
	limit := time.Duration(in.Timeout) * time.Second
	switch {
	case strings.TrimSpace(in.Command) == "":
		return 0, errors.New("command is empty")
	case in.Timeout < 0 || in.Timeout > int(most/time.Second):
		return 0, fmt.Errorf("timeout_seconds must be from 1 to %d, got %d", most/time.Second, in.Timeout)
	}
	return cmp.Or(limit, most), nil
}

// Run returns the tool run_command, which runs a command and waits for it to end.
func Run(s *Session) agent.Middleware {
	most := cmp.Or(s.config.RunTimeout, defaultRunTimeout)
	return tool.Func("run_command", fmt.Sprintf("Runs a shell command and returns its exit code, stdout and stderr. It is killed after %v.", most),
		func(ctx context.Context, in runInput) (agent.Result, error) {
			limit, err := in.limit(most)
			if err != nil {
				return agent.Result{}, err
			}
			c, err := s.prepare(in.Command, limit)
			if err != nil {
				return refused("run_command", err)
			}
			s.run(ctx, c)
			if err := ctx.Err(); err != nil {
				return agent.Result{}, err
			}
			return agent.Result{Text: c.report(ctx), Meta: c.meta()}, nil
		}, s.effects())
}

// Start returns the tool start_command, which starts a command in the background. The command is stopped when the session is
// closed.
func Start(s *Session) agent.Middleware {
	most := cmp.Or(s.config.StartTimeout, defaultStartTimeout)
	return tool.Func("start_command", fmt.Sprintf("Starts a shell command in the background and returns its id. It is killed after %v.", most),
		func(ctx context.Context, in runInput) (agent.Result, error) {
			limit, err := in.limit(most)
			if err != nil {
				return agent.Result{}, err
			}
			c, err := s.background(ctx, in.Command, limit)
			if err != nil {
				return refused("start_command", err)
			}
			return agent.Result{Text: "started " + c.id, Meta: map[string]any{"id": c.id, "command": c.script}}, nil
		}, s.effects())
}

type checkInput struct {
	ID string `json:"id" jsonschema:"the id that start_command returned, such as cmd-1"`
}

// Check returns the tool check_command, which returns the state and the output of a background command.
func Check(s *Session) agent.Middleware {
	return tool.Func("check_command", "Returns the state of a started command, running or ended, and its output.",
		func(ctx context.Context, in checkInput) (agent.Result, error) {
			c, err := s.lookup(in.ID)
			if err != nil {
				return agent.Result{}, err
			}
			result := agent.Result{Text: c.report(ctx), Meta: map[string]any{"id": c.id}}
			if c.ended() {
				result.Meta = c.meta()
			}
			return result, nil
		}, tool.Parallel(), s.effects())
}

type waitInput struct {
	IDs []string `json:"ids" jsonschema:"the ids that start_command returned"`
}

// Wait returns the tool wait_commands, which waits for background commands to end. The wait is finite, because every command has
// a time limit.
func Wait(s *Session) agent.Middleware {
	return tool.Func("wait_commands", "Waits until started commands have ended and returns their exit codes and output.",
		func(ctx context.Context, in waitInput) (agent.Result, error) {
			if len(in.IDs) == 0 {
				return agent.Result{}, errors.New("ids is empty: name the commands to wait for")
			}
			var commands []*command
			for _, id := range in.IDs {
				c, err := s.lookup(id)
				if err != nil {
					return agent.Result{}, err
				}
				commands = append(commands, c)
			}
			var b strings.Builder
			metas := map[string]any{}
			for _, c := range commands {
				select {
				case <-c.done:
				case <-ctx.Done():
					return agent.Result{}, ctx.Err()
				}
				fmt.Fprintf(&b, "%s: %s\n%s\n", c.id, c.script, c.report(ctx))
				metas[c.id] = c.meta()
			}
			return agent.Result{Text: b.String(), Meta: metas}, nil
		}, tool.Parallel(), s.effects())
}

// effects returns the effects that the session's commands can have outside Dir.
func (s *Session) effects() tool.Option {
	if s.config.Network || s.config.Unconfined {
		return tool.Effects("process", "net")
	}
	return tool.Effects("process")
}

// refused returns the result that tells the model why a command did not run. If no command can run on this machine, the result
// halts the agent.
func refused(name string, err error) (agent.Result, error) {
	setup, ok := errors.AsType[errSetup](err)
	if !ok {
		return agent.Result{}, err
	}
	return agent.Result{
		Text:      setup.Error(),
		Recommend: &agent.Recommendation{Action: agent.Halt, Source: name, Reason: noCommands + ": " + setup.Error()},
	}, nil
}
