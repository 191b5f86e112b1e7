// Package plan runs programs that are data: plans, written in EDN or JSON by a person or
// a model.
//
//	{:id "answer"
//	 :nodes [{:op :call :intent :text/summarise :input {:text {:slot/id :letter}} :as :summary
//	          :dispatch {:allow-failure? true}}
//	         {:op :call :intent :text/respond :as :reply
//	          :input {:prompt {:slot/id :letter} :about {:slot/id [:summary :text]}}
//	          :when {:present? :summary}}
//	         {:op :emit :input {:final :reply} :when {:present? :reply}}]}
//
// A plan is read, checked as a whole, and compiled to an ashlar. The same interpreter
// runs it and writes into the same DAG:
//
//	p, err := plan.Read(text)
//	…
//	input, err := plan.Bind(dag.DAG{}, map[string]any{"letter": letter})
//	…
//	cfg := stone.Config{Input: input, Grant: []string{"net/http"}}
//	if err := p.Check(app, plan.Options{}, cfg).Err(); err != nil {
//		return err // every fault, with its place in the text
//	}
//	a, err := p.Ashlar(app, plan.Options{Slots: []string{"letter"}})
//	…
//	result, err := stone.Run(ctx, a, cfg)
//	…
//	final, err := plan.Emission.From(result.DAG)
//
// A slot is a node type. A node with "as" writes a node of that type, and {:slot/id :x} reads the nearest one. A plan can run
// between steps in Go: each reads the nodes of the other, through a dag.NewType of the same name. The content of a slot is data;
// templates in it are not expanded. A path such as [:x :items 0 :name] reads a part of a slot. {:slot/text ["Deploy " {:slot/id
// :v} "?"]} is a text that contains slots. {:cel "n + 1"} is the value of an expression over slots, which is checked like a
// guard. {:slot/record :x} reads the record of its call: "cap/id", "attempts", "failure/type", "error" and "out".
//
// A slot must be defined on every path to its readers. If only a guarded node or one branch defines it, or if it may be missing,
// read it under {:present? :x} or under the same guard. The slot of a call that is allowed to fail may be read without a guard;
// if the call failed, the reader fails too, with kind missing-input.
//
// A plan may state its inputs, with a JSON Schema or the name of a registered one:
//
//	{:inputs {:letter {:type "string"} :from :person} :nodes […]}
//
// The plan then reads no other slot from outside, its guards can use the inputs, and their values are checked before it runs. A
// server publishes such a plan with a typed input.
//
// In an emit, a keyword that is the whole value of a field is the slot of that name. If no slot has that name, the keyword is
// read as a string, or rejected if it resembles the name of a slot.
//
// A guard that is an expression needs the Applicator's Language to be set, for example to cel.Language. The stone command sets
// it.
//
// # Capabilities as values
//
// A slot can hold a capability: its ID, a map with the field "cap/id", or a list of these. A call invokes it with :cap/id
// {:slot/id :who} or :dispatch {:candidates [:a/b {:slot/id :who}]}, so one call can choose the capability of another. An ID in a
// let is checked with the plan. Any other ID is checked when the call is made, like every candidate: the capability's needs must
// be granted, and an unknown ID is rejected with cap/not-found. A map may contain the contract of the capability in "requires"
// and "done"; a call with :cap/id adds its own requirements and can only narrow the contract.
//
// # Plans as values
//
// A slot can hold a plan: its text, in EDN or JSON, or its data. The node
//
//	{:op :apply :plan {:slot/id :program} :input {:n 1} :effects {:allowed #{:net/http}} :as :out}
//
// runs that plan like a plan that a capability returned: within the same limits, on the node's budget, and with only the effects
// that the node states, by default none. The fields of input are its bindings, and its emission is the slot out. A constant plan
// is read before anything runs.
//
// # Lanes
//
// A reduce follows a parallel or a map. Within and after the reduce, the slots of lanes are read like any others. A slot that one
// lane of a parallel defines has the value of that lane. A slot that several lanes or the body of a map define is the list of
// their values in lane order, without lost lanes. The last emission of the lanes is that of the last lane with an emission.
//
// # Nodes
//
// Besides its slots and emissions, a plan writes a node of type stone/plan at its start, with its ID, and its digest in the meta;
// a node of type stone/passed for every node that its guard skipped; and a node of type stone/result for every call without "as".
// The mode affects only when a node runs; the nodes written and their IDs stay the same.
//
// # Answers that are plans
//
// A capability can return a plan. The plan is checked like any other, within the grant, the budget and the depth that remain for
// its call. Its nodes are kept beside the call's node. Capability makes such a capability from a plan file.
//
// Such a plan can read the slots of the enclosing plan, the context of the request as the slot "context", and the bindings that
// came with it. A binding hides the context or a slot of the same name, and the context hides a slot named "context".
//
// Options.Mode is one of [Hybrid], [Strict] and [Lazy]. By default, a plan that a capability returned may invoke capabilities
// [DefaultRoundtrips] times.
package plan
