package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// The defaults of Config.
const (
	defaultMaxTurns   = 15
	defaultMaxCalls   = 128
	defaultMaxHealing = 3
)

// Config configures an agent. The zero Config sends the model an empty prompt once.
type Config struct {
	// System reads the system prompt, and User reads the text of the user's message; see [Say] and [Prompt]. Both are read once,
	// before the first turn, and the agent declares their queries.
	System, User dag.Reader[string]
	// Conversation reads the earlier messages, which are sent between System and User. If it is nil, User is the first message.
	// See [ConversationOf].
	Conversation dag.Reader[[]llm.Message]
	// Media reads the pictures, sounds and documents that precede the text of User in the user's message. It is read once. See
	// [MediaOf].
	Media dag.Reader[[]*llm.Media]
	// Use lists the agent's middlewares, outermost first.
	Use []Middleware
	// Decide chooses the next action after every turn; nil means ContinueOnToolUse.
	Decide Decide
	// MaxTurns limits the number of turns; 0 means 15. Two kinds of turns do not count: a turn in which the model corrects an
	// answer that does not fit the schema, and the first three turns after the model has written a tool call as text.
	MaxTurns int
	// MaxCalls limits the number of tool calls in a turn; 0 means 128. Calls beyond the limit do not run, and the model is told
	// so.
	MaxCalls int
	// Repetition returns a new watcher for an answer. It is called once for the answer's text and once for its thinking; see
	// llm.Guard. If a watcher detects repetition, the model is called once more; this happens in at most three turns of an agent.
	// If the second answer repeats itself too, the agent fails with "output-degenerate". If Repetition is nil, the agent watches
	// for a sequence of 1,000 bytes that occurs 64 times, which no ordinary text contains. An empty Watcher watches nothing.
	Repetition func() *llm.Watcher
	// Model overrides the model's name.
	Model string
	// MaxTokens limits the length of the answer in each turn; 0 means the model's limit, from the table of models or the model's
	// configuration.
	MaxTokens int
	// Params are the settings for every turn, such as the temperature. A ToolChoice that forces a call applies until the model
	// has made a call, and is "auto" afterwards. A middleware can change the settings of each turn; see Context.Params.
	Params llm.Params
	// NoCache omits the marks that make providers cache the prompt up to the end of the conversation. By default, an agent sets
	// these marks in every turn, except in the first turn of an agent without tools.
	NoCache bool

	// Admit checks the input before the model sees any of it. The ashlar sees the pipeline's DAG, whose latest node has the type
	// [Asked] and contains the prompts and the conversation. If the ashlar fails, the agent fails with "input/rejected" and is
	// not retried. call.Admit makes such an ashlar from checks of package call:
	//
	//	Admit: call.Admit("door", app, call.From(agent.Asked), call.Done{Must: []string{"no-secrets"}}),
	//
	// Tool results are not part of the input: see the package comment.
	Admit stone.Ashlar

	// Adversary judges drafts. The ashlar sees the pipeline's DAG with the draft as its latest node. The draft has the type that
	// the agent produces or, with Finalize, the draft type. If the ashlar fails, the model is told the reason and takes another
	// turn. If the adversary cannot reach a verdict, because it panicked or could not reach its own model, the agent ends
	// instead.
	Adversary stone.Ashlar
	// Healer runs after a rejection, on the same DAG with the rejection added as a failure node. The model is told the rejection,
	// followed by the text of the healer's node. A failure of the healer ends the agent.
	Healer stone.Ashlar
	// MaxHealing limits the number of turns after rejected drafts. Nil means 3; with new(0), the adversary judges once, and a
	// rejection is a failure. The adversary judges at most MaxHealing+1 drafts.
	MaxHealing *int

	// Finalize turns the accepted draft into the result; see the function Finalize.
	Finalize Finalizer

	// Options apply to the leaf, for example stone.Timeout, stone.Retry and stone.Version. Middleware.Reads declares the reads of
	// a middleware.
	Options []stone.LeafOption
}

// Prompt returns a reader that yields a prompt: it calls fn with reader's value, for example the content of the nearest node of a
// type, and fn returns the prompt's text. To read several values, see dag.Derive2 and dag.Derive3.
func Prompt[A any](reader dag.Reader[A], fn func(A) string) dag.Reader[string] {
	return dag.Derive(reader, fn)
}

// Say returns a reader of the constant prompt text.
func Say(text string) dag.Reader[string] {
	return dag.Derive(dag.Nothing, func(struct{}) string { return text })
}

// Text is the content type of an agent whose model answers in free text.
type Text struct {
	Text string `json:"text"`
}

// A Finalizer turns an agent's draft into its result.
type Finalizer struct {
	draft  draft
	result reflect.Type
	run    func(any) (any, error)
}

// Finalize returns a Finalizer. With it, the model answers with a draft of the given type, and fn returns the result for the
// draft:
//
//	Finalize: agent.Finalize(Verdict, func(v VerdictDoc) (PassedDoc, error) {
//		if !v.OK {
//			return PassedDoc{}, stone.Fail("review-rejected", "%s", v.Reason)
//		}
//		return PassedDoc{Reviewer: v.Name}, nil
//	}),
//
// The draft's type may be the produced type: fn then changes or rejects an answer. The agent calls fn once, with the draft that
// fits the schema and has passed the adversary. If fn returns an error, the agent fails with that error. A resumed run calls fn
// again, so it must be deterministic.
func Finalize[D, T any](draft dag.Type[D], fn func(D) (T, error)) Finalizer {
	f := Finalizer{draft: draftOf(draft), result: reflect.TypeFor[T]()}
	if fn != nil {
		f.run = func(v any) (any, error) { return fn(v.(D)) }
	}
	return f
}

// New returns an agent: a leaf that calls the model in turns and produces a node of type out. The model writes a draft of type
// out or, with Finalize, of the draft type. If this type is [Text], the draft is free text; otherwise, it is JSON that fits the
// type's schema. stone.Validate reports faults in the configuration.
func New[T any](name string, out dag.Type[T], model llm.Model, cfg Config) stone.Ashlar {
	a := &agent{name: cmp.Or(name, out.Name()), model: model, cfg: cfg, out: out, result: draftOf(out)}
	a.draft = a.result
	if cfg.Finalize.draft.typ != nil {
		a.draft = cfg.Finalize.draft
	}
	a.rebuild = func(cfg Config) stone.Ashlar { return New(name, out, model, cfg) }
	a.cfg.Decide = ContinueOnToolUse
	if cfg.Decide != nil {
		a.cfg.Decide = cfg.Decide
	}
	a.cfg.Use = slices.Clone(cfg.Use)
	a.cfg.MaxTurns = cmp.Or(cfg.MaxTurns, defaultMaxTurns)
	if a.cfg.Repetition == nil {
		a.cfg.Repetition = stuck
	}
	a.cfg.MaxCalls = cmp.Or(cfg.MaxCalls, defaultMaxCalls)
	a.maxHealing = *cmp.Or(cfg.MaxHealing, new(defaultMaxHealing))
	a.effects = effectsOf(cfg.Use)
	for _, m := range a.cfg.Use {
		if m.Tool != nil && m.Tool.Left == nil {
			a.offered, a.told = append(a.offered, *m.Tool), append(a.told, m.Tool.Tool)
			a.names = append(a.names, m.Tool.Name)
		}
	}
	params := a.cfg.Params
	params.Metadata = nil // Metadata is meant for the provider and may name users.
	for range params.All() {
		a.params = &params
	}
	return stone.Leaf(name, out, a.run, a.options()...)
}

// agent implements an agent. It is the leaf's Detail and does not change after New.
type agent struct {
	name    string
	model   llm.Model
	cfg     Config // with defaults filled in
	out     dag.AnyType
	draft   draft // the type of the model's answer
	result  draft // the type of the result
	effects []string
	offered []Tool      // the tools of its middlewares
	told    []llm.Tool  // the tools as shown to the model
	names   []string    // the names of these tools
	params  *llm.Params // the parameters for the opening; nil if none are set
	schemas schemas     // the schemas of the tools
	rebuild func(Config) stone.Ashlar

	maxHealing int
}

// OnlySteps reports whether all effects of the agent happen in recorded steps. It returns false if any middleware has a Wrap,
// which may have effects of its own.
func (a *agent) OnlySteps() bool {
	return !slices.ContainsFunc(a.cfg.Use, func(m Middleware) bool { return m.Wrap != nil })
}

func (a *agent) options() []stone.LeafOption {
	var queries []dag.Querier
	for _, prompt := range []dag.Reader[string]{a.cfg.System, a.cfg.User} {
		if prompt != nil {
			queries = append(queries, prompt)
		}
	}
	if a.cfg.Conversation != nil {
		queries = append(queries, a.cfg.Conversation, keptType.Query().History().Optional().Inner())
	}
	if a.cfg.Media != nil {
		queries = append(queries, a.cfg.Media)
	}
	for _, m := range a.cfg.Use {
		queries = append(queries, m.Reads...)
	}
	options := append(slices.Clone(a.cfg.Options), stone.Queries(queries...), stone.Effects(a.effects...), stone.Detail{
		Value: a, Check: a.check, CheckGrant: a.checkGrant, Fingerprint: a.fingerprint, Render: a.renders, Prompt: a.instructions, Prompts: a.prompts,
		Facts: a.facts, Questions: a.questions, Undeclared: a.undeclared, Unpriced: a.unpriced, Bound: a.bound, Unfit: a.unfit,
	})
	if walk, any := a.walk(); any {
		options = append(options, stone.Children(walk))
	}
	return options
}

// walk declares the children of the agent: pipelines used as tools, the check of the input, and the judges. It returns false if
// there are none.
func (a *agent) walk() (w stone.Walk, any bool) {
	for _, t := range a.offered {
		if t.runs != nil {
			w, any = w.Writes(t.runs.in).Perhaps(t.runs.ashlar), true
		}
	}
	if !a.cfg.Admit.IsZero() {
		w, any = w.Writes(Asked).InOrder(a.cfg.Admit), true
	}
	var judges []stone.Ashlar
	for _, judge := range []stone.Ashlar{a.cfg.Adversary, a.cfg.Healer} {
		if !judge.IsZero() {
			judges = append(judges, judge)
		}
	}
	if judges == nil {
		return w, any
	}
	// The healer sees the DAG that the adversary saw, without the nodes of the adversary.
	return w.Writes(a.draft.typ).OneOf(judges...), true
}

// undeclared returns the tools that declare no effects. It omits pipelines used as tools, which the agent's walk includes.
func (a *agent) undeclared(func(stone.Ashlar) []string) (names []string) {
	for _, t := range a.offered {
		if t.Effects == nil && t.Provider == nil && t.runs == nil {
			names = append(names, a.name+"/"+t.Name)
		}
	}
	return names
}

func effectsOf(use []Middleware) []string {
	var out []string
	add := func(effects []string) {
		for _, e := range effects {
			if !slices.Contains(out, e) {
				out = append(out, e)
			}
		}
	}
	for _, m := range use {
		if m.Tool != nil {
			add(m.Tool.Effects)
			if m.Tool.Provider != nil {
				add([]string{"net"}) // the tool runs at the provider, which uses the network
			}
		}
		add(m.Effects)
	}
	return out
}

// Rebuild returns a copy of the agent a with the middlewares that edit returns, or false if a is not an agent. The agents in its
// Admit, its adversary, its healer and its tools are rebuilt too. Used with Ashlar.Replace, it exchanges a tool everywhere in a
// pipeline.
func Rebuild(a stone.Ashlar, edit func([]Middleware) []Middleware) (stone.Ashlar, bool) {
	old, ok := a.Detail().Value.(*agent)
	if !ok {
		return a, false
	}
	again := func(a stone.Ashlar) (stone.Ashlar, bool) { return Rebuild(a, edit) }
	cfg := old.cfg
	cfg.Use = edit(slices.Clone(cfg.Use))
	for i, m := range cfg.Use {
		if m.Tool != nil && m.Tool.runs != nil {
			t, runs := *m.Tool, *m.Tool.runs
			runs.ashlar = runs.ashlar.Replace(again)
			t.runs = &runs
			cfg.Use[i].Tool = &t
		}
	}
	if !cfg.Admit.IsZero() {
		cfg.Admit = cfg.Admit.Replace(again)
	}
	if !cfg.Adversary.IsZero() {
		cfg.Adversary = cfg.Adversary.Replace(again)
	}
	if !cfg.Healer.IsZero() {
		cfg.Healer = cfg.Healer.Replace(again)
	}
	return old.rebuild(cfg), true
}

var errNoConversation = errors.New("no conversation in the content: want a node that an agent produced")

// ConversationOf returns a reader of the conversation in the nearest node of type t, which another agent or, in a chat, an
// earlier run of the same agent has produced. If no node of type t exists, the conversation is empty. A client of a published
// pipeline cannot supply the node: see [dag.Query.Inner].
func ConversationOf(t dag.AnyType) dag.Reader[[]llm.Message] {
	return dag.ReaderFunc(func(d dag.DAG) ([]llm.Message, error) {
		n, err := d.Nearest(t.Name())
		if errors.Is(err, dag.ErrMissing) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return Conversation(n)
	}, t.Query().Optional().Inner())
}

// MediaOf returns a reader of the pictures, sounds and documents in the nearest node of type t. If no node of type t exists, the
// reader returns no media. If a published pipeline has an input of this type, chats, editors, model protocols and other agents
// put the media of the newest message there.
func MediaOf(t dag.Type[[]*llm.Media]) dag.Reader[[]*llm.Media] {
	return dag.Derive(dag.Maybe(t), func(m *[]*llm.Media) []*llm.Media {
		if m == nil {
			return nil
		}
		return *m
	})
}

// Conversation returns the conversation in the node n, which an agent must have produced. For any other node, it returns an
// error.
func Conversation(n *dag.Node) ([]llm.Message, error) {
	var content struct {
		Conversation []llm.Message `json:"conversation"`
	}
	if err := json.Unmarshal([]byte(n.JSON()), &content); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", n, errNoConversation, err)
	}
	if content.Conversation == nil {
		return nil, fmt.Errorf("%s: %w", n, errNoConversation)
	}
	for i := range content.Conversation {
		m := &content.Conversation[i]
		m.ToolCalls = withoutNull(m.ToolCalls)
	}
	return content.Conversation, nil
}
