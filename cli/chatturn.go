package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

// maxMessage bounds a message, in bytes.
const maxMessage = 1 << 20

// take runs a new turn.
func (t *talk) take(ctx context.Context, message string) error {
	before, history, err := t.carried(ctx)
	if err != nil {
		return failed("%w", err)
	}
	input, err := t.speaks.say(ctx, before, history, message)
	if err != nil {
		err = fmt.Errorf("the message does not fit %q: %w", t.speaks.message.Name(), err)
	} else if len(message) > maxMessage {
		err = fmt.Errorf("the message has %d bytes: want at most %d", len(message), maxMessage)
	}
	switch {
	case err != nil && t.interactive():
		t.complain("%v", err)
		return nil
	case err != nil:
		return err
	}
	if t.last >= maxTurns {
		return failed("chat %s has %d turns, which is the most: start another one", t.name, t.last)
	}
	t.last++
	t.after[t.last] = cmp.Or(t.broken, t.at)
	return t.run(ctx, t.last, input, false)
}

// carried returns the DAG that the next turn starts with, and the messages so far. After a turn without a reply they
// have what that turn did.
func (t *talk) carried(ctx context.Context) (before dag.DAG, history []llm.Message, err error) {
	var said []llm.Message // up to a turn that ended without a reply
	if t.broken > 0 {
		info, err := t.store.find(ctx, turnID(t.name, t.broken))
		if err == nil {
			said, err = view.Broken(ctx, t.store, info)
		}
		if err != nil {
			return before, nil, err
		}
	}
	before = t.before
	if reply := t.p.Result(); said != nil && reply != nil && reply.Err() == nil && reply.Schema().Validate(ctx, []byte(`{"text":""}`)) == nil {
		content := map[string]any{"text": "", "conversation": said}
		if before, err = appended(before, dag.Spec{Type: reply.Name(), Content: content}); err != nil {
			return before, nil, err
		}
	}
	if before, err = carried(t.p, before); err != nil {
		return before, nil, err
	}
	for n := range t.calls.base.Input.Nodes() {
		if before, err = appended(before, dag.Spec{Type: n.Type(), Content: n.Content()}); err != nil {
			return before, nil, err
		}
	}
	if said != nil {
		return before, said, nil
	}
	history, err = t.speaks.messages(t.before)
	return before, history, err
}

// run runs a turn, or continues it, and prints its reply.
func (t *talk) run(ctx context.Context, number int, input dag.DAG, resume bool) error {
	run := &keptRun{store: t.store, id: turnID(t.name, number), rules: t.rules()}
	k := t.flags.keep
	if k.id = run.id; resume {
		k.resume = t.store.file
	}
	k.made.Chat = budgetLine(t.limits)
	t.calls.limits = t.account.Left()
	t.calls.limits.Latency = t.limits.Latency
	if err := run.prepare(ctx, t.app, k); err != nil {
		return err
	}
	run.opts.Labels = map[string]string{chatLabel: t.name, turnLabel: strconv.Itoa(number), afterLabel: strconv.Itoa(t.after[number])}
	result, err := t.execute(ctx, run, t.config(input))
	result = t.emitted(result)
	if t.view != nil && t.view.end(result) {
		result.Node = nil // it is printed
	}
	if err == nil {
		t.at, t.before, t.broken = number, result.DAG, 0
		delete(t.halted, number)
		return t.printResult(result, false)
	}
	t.halted[number] = true
	t.printLost(nil, result, err)
	return t.failed(ctx, run, number, err)
}

// execute runs a turn in sight of the person, who can cancel it.
func (t *talk) execute(ctx context.Context, run *keptRun, cfg stone.Config) (stone.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.person.interrupt = func() { cancel(stone.Fail(kind.Canceled, "the turn was ended by Ctrl-C")) }
	resume := t.command(t.store, "resume", run.id)
	ctx, drain, stop := interruptible(ctx, func(line string) { t.complain("%s", line) }, resume)
	defer stop()
	account := t.account.Sub(budget.Limits{Latency: t.limits.Latency})
	ctx, release := account.Context(budget.With(ctx, account))
	defer release()
	watch, err := t.watched(t.p.Name(), run)
	if err != nil {
		return stone.Result{}, err
	}
	cfg.Watch = event.All(cfg.Watch, watch)
	if t.view != nil {
		cfg.Watch = event.All(cfg.Watch, t.view)
	}
	cfg.Frontend = t.person
	return run.start(ctx, t.p, cfg, drain)
}

// failed says how a turn ended without a reply. At a terminal the chat continues.
func (t *talk) failed(ctx context.Context, run *keptRun, number int, err error) error {
	changed := errors.As(err, new(*journal.ChangedError))
	if !t.interactive() || changed || errors.Is(err, kind.Waiting) {
		ended := t.ended(run, err)
		if t.interactive() && ctx.Err() == nil {
			t.broken = number
			return nil
		}
		return ended
	}
	t.complain("failed: %v", err)
	if errors.Is(err, journal.ErrDrained) || ctx.Err() != nil {
		return &exitError{code: Failed}
	}
	if run.resumable(err) {
		t.broken = number
		t.complain("%s, another message goes on from what it did", t.howToRetry(number))
	}
	return nil
}
