package plan

import (
	"slices"
	"strings"
)

// An op is a plan operation. Error messages, the guide for models that write plans, and the page docs/reference/plan.md are
// generated from the table of operations. The function readerOf returns the function that reads an op's nodes.
type op struct {
	name    string
	does    string
	example string   // a node, in JSON
	keys    []key    // keys of its nodes, except op, id and when
	like    []string // other names that models use for the operation
}

// A key describes one or more keys of a node.
type key struct{ names, is string }

var operations = []op{
	{"let", "Puts a value into a slot.",
		`{"op":"let","value":["a","b"],"as":"items"}`,
		[]key{{"value, as", "the value and its slot"}},
		[]string{"set", "assign", "define", "def", "const", "var", "variable", "bind", "transform"}},
	{"call", "Asks a capability. The answer is the slot `as`.",
		`{"op":"call","intent":"INTENT","input":{"text":{"slot/id":"item"}},"as":"answer"}`,
		[]key{
			{"intent", "the task, such as `:text/respond`"},
			{"input", "of the request; a map or any other value, with slots in it"},
			{"as", "the slot of the answer"},
			{"cap/id", "asks this capability alone; an id, or a slot with one"},
			{"context, constraints", "further parts of the request; the constraint `{:no-web true}` excludes the effect `net`"},
			{"requires", "[requirements](#requires) on a candidate"},
			{"output", "`{:schema …}` of the answer"},
			{"dispatch", "[candidates and strategy](#dispatch)"},
			{"done, admit", "requirements on the answer, and on the input: `must`, `should`, `score-min`, as in the [configuration](configuration.md#done)"},
			{"budget", "of this call, as in the [configuration](configuration.md#budget)"},
			{"effects", "`{:allowed #{…}}`: the only effects that the answer may have"},
			{"cache", "`{:max-age-ms N}`: how old a recorded answer to an equal call may be"},
		},
		[]string{"llm", "model", "prompt", "invoke", "request", "task", "action", "function", "run", "do", "step", "generate", "intent", "execute", "fetch", "tool_call", "function_call", "call_intent"}},
	{"tool", "Calls a tool of the configuration.",
		`{"op":"tool","tool/id":"TOOL","input":{"path":"a.txt"},"as":"read"}`,
		[]key{{"tool/id", "the tool"}, {"input, as, dispatch, done, admit, effects", "as in a call"}},
		nil},
	{"emit", "The last emission is the result of the plan. A keyword that is the whole value of a field is the slot of that name.",
		`{"op":"emit","input":{"answers":{"slot/id":"answers"}}}`,
		[]key{{"input", "the value"}},
		[]string{"return", "output", "result", "respond", "answer", "final", "finish", "end", "print", "yield", "done"}},
	{"ask", "Asks a person. The run waits until somebody answers.",
		`{"op":"ask","question":["Send ",{"slot/id":"letter"},"?"],"choices":["yes","no"],"as":"said"}`,
		[]key{
			{"question", "a text, or a vector of texts and slots: `[\"Deploy \" {:slot/id :v} \"?\"]`"},
			{"choices", "the answers that are accepted; any text by default"},
			{"as", "the slot of the answer: `{:response \"yes\"}`"},
		},
		[]string{"approve", "approval", "confirm", "human", "input", "ask_user", "question", "wait", "review"}},
	{"seq", "Runs nodes in order, under one guard.",
		`{"op":"seq","when":"n > 3","body":[…]}`,
		[]key{{"body", "nodes under one guard"}},
		[]string{"sequence", "block", "group", "begin", "if", "when", "then", "subplan", "plan", "steps", "pipeline"}},
	{"match", "Runs the branch of a value. A value without a branch fails with `match-failed`.",
		`{"op":"match","on":{"slot/id":["said","response"]},"branches":{"yes":[…],"no":[…]}}`,
		[]key{{"on", "the value"}, {"branches", "nodes by value"}},
		[]string{"switch", "case", "cond", "condition", "branch", "choose", "decide", "router", "route"}},
	{"parallel", "Runs lanes at once. A reduce follows.",
		`{"op":"parallel","lanes":[[…],[…]]}`,
		[]key{{"lanes", "a vector of nodes for each"}, {"all, quorum", "`true` if no lane may fail, or how many must succeed; by default one"}},
		[]string{"concurrent", "fork", "all", "together", "async", "par"}},
	{"map", "Runs its body for all items of a list concurrently. In the reduce that follows, the body's slots are lists in the order of the\nitems.",
		`{"op":"map","over":{"slot/id":"items"},"as":"item","body":[…]}`,
		[]key{{"over, as", "the list, and the slot of an item"}, {"body", "the nodes of a lane"},
			{"all, quorum", "`true` if no lane may fail, or how many must succeed; by default one"}, {"allow-empty", "`true` if the list may be empty"}},
		[]string{"for", "foreach", "for_each", "for-each", "each", "forall", "iterate", "batch"}},
	{"reduce", "Joins the lanes of the map or parallel before it.",
		`{"op":"reduce","body":[{"op":"emit","input":{"answers":{"slot/id":"answer"}}}]}`,
		[]key{{"body", "nodes that read what the lanes before it defined"}},
		[]string{"join", "merge", "collect", "gather", "combine", "aggregate", "fold"}},
	{"loop", "Runs its body until the condition holds, at most `max` times; if it never does, the loop fails.",
		`{"op":"loop","max":3,"until":"score > 0.8","body":[…]}`,
		[]key{{"body, until, max", "the nodes, the condition after each round, the bound"}},
		[]string{"while", "repeat", "until", "retry", "do-while"}},
	{"apply", "Runs a plan that a slot holds, such as one that a model wrote.",
		`{"op":"apply","plan":{"slot/id":"program"},"as":"out"}`,
		[]key{
			{"plan", "the slot"},
			{"input", "its bindings"},
			{"as, output, dispatch, done, budget, effects", "as in a call; without effects it has none"},
		},
		[]string{"eval", "run_plan", "run-plan", "call_plan"}},
}

// ops contains the names of the operations, sorted.
var ops = func() (names []string) {
	for _, o := range operations {
		names = append(names, o.name)
	}
	return slices.Sorted(slices.Values(names))
}()

// opOf returns the operation with the given name, and reports whether there is one.
func opOf(name string) (op, bool) {
	i := slices.IndexFunc(operations, func(o op) bool { return o.name == name })
	if i < 0 {
		return op{}, false
	}
	return operations[i], true
}

// likeOp returns the name of the operation that other languages call name, or "" if there is none.
func likeOp(name string) string {
	name = strings.ToLower(name)
	for _, o := range operations {
		if slices.Contains(o.like, name) {
			return o.name
		}
	}
	return ""
}

// likeKeys maps keys of a node to their names in other languages.
var likeKeys = map[string][]string{
	"input":    {"args", "arguments", "params", "parameters", "inputs", "with", "data", "payload", "value", "output", "prompt", "body"},
	"as":       {"name", "result", "output", "save_as", "saveas", "save-as", "store", "store_as", "into", "to", "out", "assign", "var", "slot", "key", "bind"},
	"intent":   {"name", "action", "function", "task", "capability", "tool", "target", "call", "fn", "method"},
	"value":    {"val", "data", "input", "to", "expr", "content"},
	"when":     {"if", "condition", "guard", "cond", "unless"},
	"question": {"prompt", "text", "message", "input"},
	"choices":  {"options", "answers", "enum"},
	"over":     {"items", "list", "in", "collection", "input", "each", "foreach"},
	"body":     {"nodes", "do", "steps", "then", "each"},
	"branches": {"cases", "case", "when", "arms"},
	"on":       {"value", "input", "switch", "expr", "key"},
	"lanes":    {"branches", "nodes", "body", "steps", "tasks"},
	"until":    {"while", "condition", "exit", "stop"},
	"max":      {"times", "limit", "max_iterations", "max-iterations", "maxiterations", "iterations", "n"},
	"tool/id":  {"tool", "name", "id"},
	"cap/id":   {"cap", "capability", "model"},
	"op":       {"type", "kind", "operation", "node", "action"},
	"nodes":    {"steps", "plan", "tasks", "body", "actions"},
}

// likeKey returns the key of o that was probably meant by name, or "" if there is none. It does not return a key for which taken
// returns true, because the node already has it.
func likeKey(o op, name string, taken func(string) bool) string {
	name = strings.ToLower(name)
	for _, k := range append([]key{{"op, when", ""}}, o.keys...) {
		for known := range strings.SplitSeq(k.names, ", ") {
			if slices.Contains(likeKeys[known], name) && !taken(known) {
				return known
			}
		}
	}
	return ""
}
