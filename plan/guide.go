package plan

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/schema"
)

// This file writes the guide for models that write plans.

// A writer writes the text that helps a model write plans for one call.
type writer struct {
	app     *call.Applicator
	effects []string // effects that the plan may have
	slots   map[string]*schema.Schema
	budget  string
}

// Guide implements the optional method of a call.Planner. It returns the guide for a model that answers the request with a plan.
func (pl planner) Guide(app *call.Applicator, req *call.Request, d dag.DAG, passed []dag.Query) *call.Guide {
	w := writer{app: app, effects: req.Effects, slots: map[string]*schema.Schema{}, budget: left(req.Budget)}
	slots, _, _ := slotsOf(d, pl.passes(passed))
	for _, name := range slots {
		w.slots[name] = nil
		if pl.within != nil {
			w.slots[name] = pl.within.slotType(name).Schema()
		}
	}
	if req.Context != nil {
		w.slots[contextSlot] = nil
	}
	return &call.Guide{Brief: w.brief(), Whole: w.whole(), Tell: w.tell, Refuse: func(text []byte) *call.Error {
		return pl.Valid(app, text, d, req.Effects)
	}}
}

const opening = `A plan is an object {"nodes":[…]}, in JSON or EDN. Nodes are objects with "op" and run in order; those that do not read each other run at once. Any node may have "when".`

const values = `A value is JSON in which {"slot/id":"x"} is the value of slot x, {"slot/id":["x","items",0]} a part of it, {"slot/text":["Dear ",{"slot/id":"x"},"!"]} a text with slots, and %s. Nothing else is replaced: no {{x}}, no ${x}, no nested calls. A slot must be defined by an earlier node, or be listed below.
"when" and "until" are {"present?":"x"}, {"failed?":"x"}%s.`

// brief returns the short guide, which is sent with every request.
func (w *writer) brief() string {
	var b strings.Builder
	b.WriteString(opening + "\n\nOperations:\n")
	for _, o := range operations {
		if o.name == "tool" && len(w.tools()) == 0 || o.name == "apply" || o.name == "seq" {
			continue // a model rarely needs these
		}
		fmt.Fprintf(&b, "%s  %s\n", o.example, inJSON(short(o.does)))
	}
	formula, guard := `no expression`, ""
	if _, err := kinds.Language(w.app); err == nil {
		formula, guard = `{"cel":"n + 1"} an expression in CEL over slots`, `, or an expression in CEL such as "n > 3"`
	}
	fmt.Fprintf(&b, "\n"+values+"\n", formula, guard)
	w.world(&b)
	return b.String()
}

// world writes lists of the slots, intents and tools that a plan can use.
func (w *writer) world(b *strings.Builder) {
	b.WriteString("\nSlots:")
	if len(w.slots) == 0 {
		b.WriteString(" none")
	}
	for _, name := range slices.Sorted(maps.Keys(w.slots)) {
		fmt.Fprintf(b, "\n- %s%s", name, typed(": ", w.slots[name]))
	}
	b.WriteString("\nIntents (input → answer):")
	n := 0
	for intent, i := range w.intents() {
		if n++; n > mostIntents {
			continue
		}
		fmt.Fprintf(b, "\n- %s", intent)
		if i.Description != "" {
			b.WriteString(": " + i.Description)
		}
		in, _ := w.app.Schema(i.In)
		out, _ := w.app.Schema(i.Out)
		fmt.Fprintf(b, "%s%s", typed(" ", in), typed(" → ", out))
	}
	if n == 0 {
		b.WriteString(" none")
	} else if n > mostIntents {
		fmt.Fprintf(b, "\n(and %d more)", n-mostIntents)
	}
	if tools := w.tools(); len(tools) > 0 {
		b.WriteString("\nTools: " + strings.Join(tools, ", "))
	}
	b.WriteString("\nEffects that the plan may have: ")
	if w.effects == nil {
		b.WriteString("any")
	} else if len(w.effects) == 0 {
		b.WriteString("none")
	} else {
		b.WriteString(strings.Join(w.effects, ", "))
	}
	if w.budget != "" {
		b.WriteString("\nBudget left: " + w.budget)
	}
}

// mostIntents is the maximum number of intents in a list.
const mostIntents = 50

// intents yields, sorted by name, the intents that at least one capability can answer with the effects allowed to the plan.
func (w *writer) intents() iter.Seq2[string, call.Intent] {
	names := slices.Collect(maps.Keys(w.app.Intents))
	if w.app.Intents == nil && w.app.Registry != nil {
		names = slices.Collect(w.app.Registry.Intents())
	}
	return func(yield func(string, call.Intent) bool) {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
			asked, _ := w.app.Candidates(call.Spec{Intent: name}, call.Budget{}, w.effects)
			if len(asked) == 0 || name == terms.Grade || name == terms.Check {
				continue
			}
			intent := w.app.Intents[name]
			if m, ok := w.app.Registry.Lookup(asked[0]); ok && intent.In == "" {
				intent.In = m.In
			}
			if m, ok := w.app.Registry.Lookup(asked[0]); ok && intent.Out == "" {
				intent.Out = m.Out
			}
			if !yield(name, intent) {
				return
			}
		}
	}
}

// tools returns the IDs of the tools that the plan may call.
func (w *writer) tools() (ids []string) {
	for _, id := range w.app.Tools.IDs() {
		if asked, _ := w.app.Candidates(call.Spec{Tool: id}, call.Budget{}, w.effects); len(asked) > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// whole returns the full guide, which describes every field of every operation.
func (w *writer) whole() string {
	var b strings.Builder
	b.WriteString(opening + "\n\n")
	for _, o := range operations {
		b.WriteString(o.fields())
	}
	b.WriteString(dispatching)
	formula := `{"cel":"n + 1"} an expression over slots`
	fmt.Fprintf(&b, "\n"+values+"\n", formula, `, or an expression in CEL such as "n > 3"`)
	w.world(&b)
	return b.String()
}

const dispatching = `"dispatch" has "candidates" (ids of capabilities, in order), "strategy" ("cascade", "tournament", "race", "agreement"), "retry":{"same-cap-max":1,"fallback-max":1}, "repair":{"max":1} and "allow-failure?":true, after which the slot is read under {"present?":"x"} and {"slot/record":"x"} has what failed.
"done" has "must" and "should", names of checks, and "score-min".
`

// fields returns the operation's description and example, followed by a list of all its fields.
func (o op) fields() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n  %s\n", o.name, inJSON(short(o.does)), o.example)
	for _, k := range o.keys {
		fmt.Fprintf(&b, "  %s: %s\n", k.names, inJSON(short(k.is)))
	}
	return b.String()
}

// short returns text from the reference page without links and markup.
func short(text string) string {
	for {
		before, rest, ok := strings.Cut(text, "](")
		if !ok {
			break
		}
		_, after, _ := strings.Cut(rest, ")")
		i := strings.LastIndexByte(before, '[')
		text = before[:max(i, 0)] + before[i+1:] + after
	}
	return strings.NewReplacer("`", "", "\n", " ").Replace(text)
}

// tell returns the message to the model that wrote the plan in text. It describes at most mostTold of the findings, and the grammar
// that they concern.
func (w *writer) tell(text []byte, findings stone.Findings) string {
	json := true
	if v, err := edn.ReadEither(text, edn.Limits{}); err == nil {
		json = v.IsJSON()
	}
	var b strings.Builder
	b.WriteString("The plan was refused, and nothing of it ran:\n")
	about, slots, intents := map[string]bool{}, false, false
	for i, f := range findings.Errors() {
		if i == mostTold {
			fmt.Fprintf(&b, "- and %d more\n", len(findings.Errors())-i)
			break
		}
		b.WriteString("- " + saidTo(f, json) + "\n")
		switch f.Type {
		case "missing-producer", "maybe-unavailable":
			slots = true
		case "no-candidate", "effect-not-granted":
			intents = true
		case unknownField, missingField, badValue, "missing-until", "missing-max":
			about[opAt(text, f.Path)] = true
		}
	}
	for _, o := range operations {
		if about[o.name] {
			b.WriteString(o.fields())
		}
	}
	if slots {
		b.WriteString("Slots given to the plan: " + listed(maps.Keys(w.slots)) + "\n")
	}
	if intents {
		names := map[string]call.Intent{}
		maps.Insert(names, w.intents())
		b.WriteString("Intents: " + listed(maps.Keys(names)) + "\n")
	}
	return b.String()
}

// mostTold is the maximum number of findings in one message to a model.
const mostTold = 30

func listed(names iter.Seq[string]) string {
	all := slices.Sorted(names)
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all[:min(len(all), mostIntents)], ", ")
}

// saidTo returns one line about f, in JSON notation if json is true, and otherwise in EDN.
func saidTo(f stone.Finding, json bool) string {
	line := f.Message
	if f.Suggestion != "" {
		line += fmt.Sprintf("; did you mean %q?", f.Suggestion)
	}
	if json {
		line = inJSON(line)
	}
	if f.Path != "" {
		line = f.Path + " " + line
	}
	return line
}

// opAt returns the operation of the innermost node on a path such as nodes[2].body[0].input, or "" if there is none.
func opAt(text []byte, path string) string {
	v, err := edn.ReadEither(text, edn.Limits{})
	if err != nil {
		return ""
	}
	found := ""
	for _, part := range strings.Split(path, ".") {
		name, indexes, _ := strings.Cut(part, "[")
		var ok bool
		if v, ok = v.Field(name); !ok {
			break
		}
		for index := range strings.SplitSeq(strings.TrimSuffix(indexes, "]"), "][") {
			if i, err := strconv.Atoi(index); err == nil && i < v.Len() && v.Kind() == edn.KindVector {
				v = v.At(i)
			}
		}
		if op, ok := v.Field("op"); ok {
			found, _ = op.Name()
		}
	}
	return found
}

// left returns a description of what is left of the budget.
func left(b call.Budget) string {
	var parts []string
	if b.Roundtrips != nil {
		parts = append(parts, fmt.Sprintf("%d calls", max(*b.Roundtrips, 0)))
	}
	if b.Tokens != nil {
		parts = append(parts, fmt.Sprintf("%d tokens", max(*b.Tokens, 0)))
	}
	if b.USD != nil {
		parts = append(parts, fmt.Sprintf("%.4g USD", max(*b.USD, 0)))
	}
	if b.Latency != nil {
		parts = append(parts, b.Latency.Round(1e9).String())
	}
	return strings.Join(parts, ", ")
}
