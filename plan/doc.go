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
// A program reads a plan, checks it as a whole, and compiles it to an ashlar. The interpreter for pipelines in Go also runs plans:
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
// between steps in Go. Plan and steps can read each other's nodes, where a Go step uses a dag.NewType with the name of the slot.
// The content of a slot is data; templates in it are not expanded. A path such as [:x :items 0 :name] reads a part of a slot.
// {:slot/text ["Deploy " {:slot/id :v} "?"]} is a string with the values of slots inserted. {:cel "n + 1"} is the value of an
// expression over slots, which is checked like a guard. {:slot/record :x} reads the record of the call that defines the slot:
// "cap/id", "attempts", "failure/type", "error" and "out".
//
// A slot must be defined on every path to its readers. If only a guarded node or one branch defines it, or if it may be missing,
// read it under {:present? :x} or under the same guard. The slot of a call that is allowed to fail may be read without a guard;
// if the call failed, the reader fails too, with kind missing-input.
//
// A plan may declare its inputs, each with a JSON Schema or the name of a registered schema:
//
//	{:inputs {:letter {:type "string"} :from :person} :nodes […]}
//
// The plan then reads no other slot from outside, its guards can use the inputs, and their values are checked before it runs. A
// server publishes such a plan with a typed input.
//
// In an emit, a keyword that is the whole value of a field refers to the slot of that name. If no slot has that name, the keyword
// is read as a string, or rejected if it resembles the name of a slot.
//
// Expressions require the Applicator's Language to be set, for example to cel.Language. The stone command sets it.
//
// # Capabilities as values
//
// A slot can hold a capability: its ID, a map with the field "cap/id", or a list of these. A call invokes this capability with
// :cap/id {:slot/id :who} or :dispatch {:candidates [:a/b {:slot/id :who}]}. This way, one call can choose the capability for
// another call. An ID in a let is checked with the plan. Any other ID is checked when the call is made, like every candidate: the
// capability's needs must be granted, and an unknown ID is rejected with cap/not-found. A map may contain the contract of the
// capability in "requires" and "done"; a call with :cap/id can add requirements of its own, but cannot relax the contract.
//
// # Plans as values
//
// A slot can hold a plan: its text, in EDN or JSON, or its data. The node
//
//	{:op :apply :plan {:slot/id :program} :input {:n 1} :effects {:allowed #{:net/http}} :as :out}
//
// runs that plan like a plan that a capability returned: within the same limits, on the node's budget, and with only the effects
// that the node states, by default none. The fields of input are its bindings, and its emission becomes the value of the slot out.
// A constant plan is read before anything runs.
//
// # Lanes
//
// A reduce follows a parallel or a map. Within and after the reduce, the slots of lanes are read like any others. If only one lane
// of a parallel defines a slot, the slot has the value from this lane. If several lanes or the body of a map define it, its value
// is the list of the values in lane order, without lost lanes. After the reduce, the nearest emission is the one of the last lane
// with an emission.
//
// # Nodes
//
// Besides its slots and emissions, a plan writes a node of type stone/plan at its start, which contains the plan's ID and, in the
// meta, its digest; a node of type stone/passed for every node that was skipped because its guard did not hold; and a node of type
// stone/result for every call without "as". The mode determines only when nodes run: the nodes written and their IDs are the same
// in all modes.
//
// # Answers that are plans
//
// A capability can return a plan. The plan is checked like any other plan, and runs within the grant, the budget and the depth that
// remain for its call. Its nodes are kept beside the call's node. Capability makes a capability from a plan file.
//
// Such a plan can read the slots of the enclosing plan, the context of the request as the slot "context", and the bindings that
// came with it. A binding hides the context or a slot of the same name, and the context hides a slot named "context".
//
// Options.Mode is one of [Hybrid], [Strict] and [Lazy]. By default, a plan that a capability returned may invoke capabilities
// [DefaultRoundtrips] times.
package plan
