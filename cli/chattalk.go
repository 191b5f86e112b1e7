package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// A talk is the state of an open chat.
type talk struct {
	*app
	store  *store
	p      stone.Ashlar
	speaks dialogue
	name   string
	flags  chatFlags

	limits  budget.Limits   // the chat's limits; Latency limits each turn
	account *budget.Account // the chat's account, charged for all turns

	after  map[int]int  // number of the turn that each turn continues
	last   int          // number of the newest turn
	at     int          // number of the turn that the next one continues; 0 for none
	before dag.DAG      // DAG of the turn to be continued
	broken int          // number of a turn without a reply, which can be resumed; 0 for none
	halted map[int]bool // turns without a reply

	person  *person
	view    *chatView // nil unless standard output is a terminal
	signals chan os.Signal
}

// talk opens a chat and runs turns until the user ends it.
func (a *app) talk(c *cobra.Command, p stone.Ashlar, flags chatFlags) (err error) {
	if err := a.consentToConfig(); err != nil {
		return err
	}
	s, err := a.newStore(c.Context(), "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	t := &talk{app: a, store: s, p: p, flags: flags, after: map[int]int{}, signals: make(chan os.Signal, 8)}
	ctx := c.Context()
	if t.name, err = s.chatName(ctx, flags.session); err != nil {
		return err
	}
	turns, err := s.turnsOf(ctx, t.name)
	if err == nil {
		ctx, err = t.budget(ctx, c.Flags(), turns)
	}
	if err != nil {
		return err
	}
	if t.speaks, err = dialogueOf(ctx, p, a.calls.base.Input, a.calls.file != ""); err != nil {
		return err
	}
	if err := t.check(ctx); err != nil {
		return err
	}
	// A signal during a turn cancels the turn. Between turns, the terminal must be restored before the process ends.
	signal.Notify(t.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(t.signals)
	t.person = a.person(nil, true)
	t.person.editor = newEditor(terminal(a.Stdin), terminal(a.Stderr))
	t.person.wanted = make(chan string)
	defer t.person.editor.close()
	if terminal(a.Stdout) != nil && !a.json {
		t.view = &chatView{out: a.Stdout, replies: t.speaks.replies, columns: a.columns()}
		t.person.display = t.view
	}
	if err := t.open(ctx, turns); err != nil {
		return err
	}
	return t.converse(ctx)
}

// budget opens the account for all turns of the chat. The chat keeps its earlier budget unless flags change it.
func (t *talk) budget(ctx context.Context, f *pflag.FlagSet, turns []turn) (context.Context, error) {
	k := &t.calls
	if k.conf != nil {
		t.limits = k.conf.Budget
	}
	if len(turns) > 0 {
		var kept budget.Limits
		from, _ := readSource(turns[len(turns)-1].RunInfo) // a run started by another program has no budget
		old := pflag.NewFlagSet("", pflag.ContinueOnError)
		budgetFlags(old, &kept)
		if err := old.Parse(from.Chat); err != nil {
			return ctx, failed("the recorded budget of chat %s: %w", t.name, err)
		}
		t.limits = over(kept, t.limits)
	}
	t.limits = over(k.budget, t.limits)
	if err := t.fillApplicator(t.limits.USD != nil || asksAny(t.p)); err != nil {
		return ctx, err
	}
	if k.conf != nil {
		k.table = k.conf.Table
		ctx = llm.WithTable(ctx, k.table)
	}
	k.limits = t.limits
	whole := t.limits
	whole.Latency = nil
	t.account = budget.New(whole)
	for _, one := range turns {
		steps, err := t.store.Steps(ctx, one.ID)
		if err != nil {
			return ctx, failed("%w", err)
		}
		for _, s := range steps {
			t.account.Charge(s.Spent())
		}
	}
	return ctx, nil
}

// check validates the pipeline with a sample message as its input.
func (t *talk) check(ctx context.Context) error {
	input, err := t.speaks.say(ctx, t.calls.base.Input, nil, "?")
	if err != nil {
		return failed("%w", err)
	}
	findings := t.findings(t.p, t.config(input))
	if err := printFindings(t.Stderr, findings); err != nil {
		return output(err)
	}
	if findings.Err() != nil {
		return &exitError{code: Failed}
	}
	return nil
}

// config returns the Config for a turn with the given input.
func (t *talk) config(input dag.DAG) stone.Config {
	cfg := t.calls.base
	cfg.Input, cfg.Conversation = input, t.name
	return cfg
}

// open reads the recorded turns of the chat, after which it continues.
func (t *talk) open(ctx context.Context, turns []turn) (err error) {
	t.halted = map[int]bool{}
	for _, one := range turns {
		t.after[one.number], t.last = one.after, one.number
		t.halted[one.number] = one.State != journal.Done
	}
	said := "chat " + t.name
	if len(turns) > 0 {
		said += ": " + text.Plural(len(turns), "turn")
		if spent := summed(t.name, turns).cost; spent != "" {
			said += ", " + spent
		}
	}
	t.complain("%s", said)
	if t.interactive() {
		t.complain("/help lists the commands, Ctrl-D ends the chat")
	}
	if len(turns) == 0 {
		return nil
	}
	newest := turns[len(turns)-1]
	if newest.State == journal.Done {
		return t.goTo(ctx, newest.number)
	}
	if err := t.goTo(ctx, t.replied(newest.after)); err != nil {
		return err
	}
	if newest.State == journal.Failed || newest.State == journal.Canceled {
		t.broken = newest.number
		t.complain("turn %d is %s: the next turn continues from what it did; %s", newest.number, newest.State, t.howToRetry(newest.number))
		return nil
	}
	t.complain("turn %d is %s: it continues", newest.number, newest.State)
	return t.run(ctx, newest.number, dag.DAG{}, true)
}

func (t *talk) interactive() bool { return t.person.editor != nil }

func (t *talk) howToRetry(number int) string {
	if t.interactive() {
		return "/retry continues it, /undo forgets it"
	}
	return "to continue it: " + t.command(t.store, "resume", turnID(t.name, number))
}

// replied returns the given turn if it has a reply, and otherwise the nearest earlier turn in its chain that has one.
func (t *talk) replied(number int) int {
	for t.halted[number] {
		number = t.after[number]
	}
	return number
}

// goTo selects the finished turn after which the next turn continues.
func (t *talk) goTo(ctx context.Context, number int) (err error) {
	t.at, t.before = number, dag.DAG{}
	if number > 0 {
		t.before, err = t.store.DAG(ctx, turnID(t.name, number))
	}
	if err != nil {
		return failed("%w", err)
	}
	if number > 0 && t.before.Len() == 0 {
		return failed("turn %d was removed: start another chat", number)
	}
	if node, err := t.before.Nearest(t.speaks.message.Name()); err == nil && t.interactive() {
		fmt.Fprintf(t.Stderr, "> %s\n", strings.Join(text.Lines(t.speaks.text(node)), "\n. "))
		return t.printResult(stone.Result{Node: t.speaks.reply(t.before)}, false)
	}
	return nil
}

// converse waits for messages and runs a turn for each of them.
func (t *talk) converse(ctx context.Context) error {
	for {
		message, err := t.listen(ctx)
		message = strings.TrimSpace(message)
		switch {
		case message == "" && errors.Is(err, io.EOF):
			return t.leave()
		case message == "" && err != nil:
			return failed("the chat ended: %w", err)
		case message == "":
			continue
		}
		if said, slash := strings.CutPrefix(message, "/"); slash && !strings.HasPrefix(said, "/") {
			err = t.obey(ctx, said)
		} else {
			err = t.take(ctx, said)
		}
		if errors.Is(err, io.EOF) {
			return t.leave()
		}
		if err != nil {
			return err
		}
	}
}

// listen waits for the user's next message and returns it.
func (t *talk) listen(ctx context.Context) (string, error) {
	for {
		select {
		case sig := <-t.signals: // the signal came during the turn or just after it
			if sig == os.Interrupt && t.interactive() {
				continue
			}
			return "", errors.New(sender(sig))
		default:
		}
		break
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	message, err := t.person.next(ctx, "Ctrl-D ends the chat")
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return message, err
}

// leave ends the chat.
func (t *talk) leave() error {
	if t.interactive() && t.last > 0 {
		words := []string{"chat"}
		if from := t.flags.keep.made.Pipeline; from != "" {
			words = append(words, quoted(from))
		}
		for _, flag := range t.flags.keep.made.Flags {
			words = append(words, quoted(flag))
		}
		t.complain("to continue: %s", t.command(t.store, append(words, "--session", t.name)...))
	}
	return nil
}

const chatHelp = `/retry  continue the turn that failed or was canceled
/undo   forget the last turn: the next message continues the one before
/quit   end the chat, as Ctrl-D does
/help   show this
A line that ends with \ continues in the next one. Ctrl-C cancels a turn.
A message that begins with / is typed with //.
`

// obey executes a command that the user has typed in place of a message. If it returns io.EOF, the chat ends.
func (t *talk) obey(ctx context.Context, command string) error {
	switch {
	case command == "help":
		_, err := io.WriteString(t.Stderr, chatHelp)
		return output(err)
	case command == "quit":
		return io.EOF
	case command == "retry" && t.broken > 0:
		return t.run(ctx, t.broken, dag.DAG{}, true)
	case command == "retry":
		t.complain("no turn has failed")
	case command == "undo" && t.broken > 0:
		t.broken = 0
		t.complain("undone: the next message continues turn %d", t.at)
	case command == "undo" && t.at > 0:
		if err := t.goTo(ctx, t.replied(t.after[t.at])); err != nil {
			return err
		}
		t.complain("undone: the next message continues turn %d", t.at)
	case command == "undo":
		t.complain("nothing to undo")
	case t.interactive():
		t.complain("unknown command /%s: /help lists them", command)
	default: // an error ends a script, because later messages may depend on the command
		return fmt.Errorf("unknown command /%s: known are /retry, /undo, /quit and /help, and // begins a message with /", command)
	}
	return nil
}
