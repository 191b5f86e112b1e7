package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/llm"
)

// A dialogue describes a pipeline's role in a chat.
type dialogue struct {
	message dag.AnyType // type of the node that contains the person's message
	field   string      // field that contains the text; "" if the content is the text
	history dag.AnyType // type of the node that contains the earlier messages; nil if the pipeline does not read them
	replies []string    // names of the leaves that can produce the reply
	emits   bool        // the pipeline is a plan, and its reply is the value that it emits
}

// historyName is the type of the node that contains the earlier messages of a chat.
const historyName = "conversation"

// dialogueOf returns the role of a pipeline in a chat. Given contains the nodes with which each turn starts, such as a plan's
// slots. A plan's reply is the value that it emits. If the pipeline cannot be used in a chat, the error names what is missing.
func dialogueOf(ctx context.Context, p stone.Ashlar, given dag.DAG, emits bool) (d dialogue, err error) {
	name := text.Line(p.Name())
	var inputs []string
	for _, in := range tree.Inputs(p) {
		_, missing := given.Nearest(in.Type.Name())
		switch {
		case readsHistory(ctx, in.Type) && !in.Many:
			d.history = in.Type
		case !in.Optional && missing != nil:
			inputs, d.message = append(inputs, text.Line(in.Type.Name())), in.Type
		}
	}
	switch len(inputs) {
	case 0:
		way := "its first step read a type that no step produces, such as User: agent.Prompt(question, …)"
		if emits {
			way = "it read a slot that no node sets, such as {:slot/id :message}"
		}
		return d, failed("%s does not read a message: let %s", name, way)
	case 1:
	default:
		return d, failed("%s needs %s as input, but a chat provides only the message: read the message as one of them, and produce the others, or set the slots of a plan with --bind", name, strings.Join(inputs, " and "))
	}
	fields := textFields(ctx, d.message)
	if len(fields) == 0 {
		return d, failed("%s reads %q, whose content cannot be a message: make it a string, or an object in which one string is required", name, inputs[0])
	}
	if d.field = fields[0]; len(fields) > 1 && slices.Contains(fields, "text") {
		d.field = "text"
	} else if len(fields) > 1 {
		return d, failed("%s reads %q, in which either %s can hold the message: make one of them required", name, inputs[0], strings.Join(fields, " and "))
	}
	if d.replies, d.emits = lastLeaves(p), emits; len(d.replies) == 0 && !emits {
		return d, failed("%s ends with a fan-out, which is not a reply: add a stone.Reduce that produces one", name)
	}
	if d.history == nil && emits {
		return d, failed("%s does not read earlier turns: read the slot %s, which holds the messages so far, with {:slot/id :%s}", name, historyName, historyName)
	}
	if d.history == nil && !remembers(p) {
		return d, failed("%s does not read earlier turns: set Conversation: agent.ConversationOf(reply) in its agent, where reply is the type that the agent produces, or read the type %s, which holds the messages so far", name, historyName)
	}
	return d, nil
}

// readsHistory reports whether nodes of a type can contain the earlier messages of a chat.
func readsHistory(ctx context.Context, t dag.AnyType) bool {
	return t.Name() == historyName && t.Schema().Validate(ctx, []byte(`[{"role":"user","content":[{"text":"?"}]}]`)) == nil
}

// textFields returns the names of the properties that can contain the text of a message: an object that has only this property,
// with a string as its value, is valid content of the type. If a plain string is valid, it returns only "".
func textFields(ctx context.Context, t dag.AnyType) (fields []string) {
	if t.Schema().Validate(ctx, []byte(`"?"`)) == nil {
		return []string{""}
	}
	for _, name := range t.Schema().Properties() {
		if content, err := json.Marshal(map[string]string{name: "?"}); err == nil && t.Schema().Validate(ctx, content) == nil {
			fields = append(fields, name)
		}
	}
	return fields
}

// lastLeaves returns the names of the leaves that can produce the last node of a pipeline. If a fan-out can produce it,
// lastLeaves returns no names.
func lastLeaves(p stone.Ashlar) (names []string) {
	children := slices.DeleteFunc(p.Children(), stone.Ashlar.IsGlue)
	switch p.Form() {
	case "leaf":
		return []string{p.Name()}
	case "parallel", "map":
		return nil
	case "seq", "flow":
		children = children[max(len(children)-1, 0):]
	}
	for _, c := range children {
		below := lastLeaves(c)
		if below == nil {
			return nil
		}
		names = append(names, below...)
	}
	return names
}

// remembers reports whether a pipeline can read earlier turns, either as messages or as a node that it produced itself.
func remembers(p stone.Ashlar) bool {
	made := p.ProducesAll()
	return slices.ContainsFunc(tree.Inputs(p), func(in tree.Input) bool {
		return in.Many || in.Optional && slices.ContainsFunc(made, func(t dag.AnyType) bool { return t.Name() == in.Type.Name() })
	}) || readsEverything(p)
}

func readsEverything(p stone.Ashlar) bool {
	return slices.ContainsFunc(p.Queries(), dag.Query.IsEverything) || slices.ContainsFunc(p.Children(), readsEverything)
}

// say returns the DAG with the earlier messages and the user's new message added.
func (d dialogue) say(ctx context.Context, before dag.DAG, history []llm.Message, message string) (dag.DAG, error) {
	var content any = message
	if d.field != "" {
		content = map[string]string{d.field: message}
	}
	data, err := json.Marshal(content)
	if err == nil {
		err = d.message.Schema().Validate(ctx, data)
	}
	if err == nil && d.history != nil {
		var all json.RawMessage
		if all, err = json.Marshal(append([]llm.Message{}, history...)); err == nil {
			before, err = appended(before, dag.Spec{Type: historyName, Content: all})
		}
	}
	if err != nil {
		return before, err
	}
	return appended(before, dag.Spec{Type: d.message.Name(), Content: json.RawMessage(data)})
}

// reply returns the node of the reply in a turn's DAG, or nil if the turn has no reply.
func (d dialogue) reply(turn dag.DAG) *dag.Node {
	if !d.emits {
		return turn.Latest()
	}
	n, _ := turn.Nearest(terms.Emit) // nil if the plan emitted nothing
	return n
}

// messages returns the messages up to and including a turn, or nil if the pipeline reads no history.
func (d dialogue) messages(turn dag.DAG) (all []llm.Message, err error) {
	if d.history == nil || turn.Len() == 0 {
		return nil, nil
	}
	before, err := turn.Nearest(historyName)
	if err == nil {
		err = json.Unmarshal([]byte(before.JSON()), &all)
	}
	if err != nil && !errors.Is(err, dag.ErrMissing) { // the node is missing if the pipeline did not read a history at that time
		return nil, err
	}
	said, err := turn.Nearest(d.message.Name())
	if err != nil {
		return nil, err
	}
	all = append(all, llm.User(d.text(said)))
	if reply := d.reply(turn); reply != nil {
		all = append(all, llm.Message{Role: llm.RoleAssistant, Content: []llm.Part{{Text: reply.Text()}}})
	}
	return all, nil
}

// text returns the text of the message in a node that say has created.
func (d dialogue) text(n *dag.Node) string {
	if d.field == "" {
		return n.Text()
	}
	s, _ := n.Get(d.field, "").(string) // "" if another program created the node
	return s
}

func appended(d dag.DAG, s dag.Spec) (dag.DAG, error) {
	s.Parents = d.Next()
	n, err := dag.NewNode(s)
	if err != nil {
		return d, err
	}
	return d.Append(n)
}

// carried returns the nodes of a turn's DAG that are passed to the next turn. A reply contains the whole conversation, so if all
// replies were passed on, the DAG would grow with the square of the number of turns.
func carried(p stone.Ashlar, before dag.DAG) (after dag.DAG, err error) {
	keep := map[dag.ID]bool{}
	keepAll := func(t dag.AnyType) error {
		nodes, err := before.All(t.Name())
		for _, n := range nodes {
			keep[n.ID()] = true
		}
		return err
	}
	if readsEverything(p) {
		return before, nil
	}
	for _, q := range p.QueriesAll() {
		switch {
		case q.Type() == nil || dag.Reserved(q.Type().Name()): // a nil type is the query of a nil reader, which Validate reports
		case q.IsNearest():
			if n, err := before.Nearest(q.Type().Name()); err == nil {
				keep[n.ID()] = true
			}
		default:
			if err := keepAll(q.Type()); err != nil {
				return after, err
			}
			if q.After() == nil {
				continue
			}
			if err := keepAll(q.After()); err != nil {
				return after, err
			}
		}
	}
	for n := range before.Nodes() {
		if !keep[n.ID()] {
			continue
		}
		if after, err = appended(after, dag.Spec{Type: n.Type(), Content: n.Content(), Meta: n.Meta(), Time: n.Time()}); err != nil {
			return after, err
		}
	}
	return after, nil
}
