// Package tool makes tools for agents from Go functions.
//
//	type lookup struct {
//		City string `json:"city" jsonschema:"name of the city"`
//		Days int    `json:"days,omitempty" jsonschema:"how many days ahead"`
//	}
//
//	forecast := tool.Func("forecast", "Tells the weather of a city.",
//		func(ctx context.Context, in lookup) (string, error) { … },
//		tool.Parallel(), tool.Effects("net"))
//
// A tool is a middleware: add it to an agent's Use list. An agent cannot call tools that are not in this list. The model sees
// only the schema of the input type, so describe the fields.
//
// # Results for the model
//
// The model receives a string as text, and any other output as JSON. A function can also return an [agent.Result]. An
// [llm.Media], even within a struct or list, is shown to the model, or the model is told that its provider does not support it.
//
// Input that does not fit the schema never reaches the function: the call returns an [InputError] with all problems. An error of
// the function is returned unchanged. The model receives either error and can call the tool again, so errors should explain how
// to fix the call.
//
// # Bounds
//
// [Timeout] limits the duration of a call: it cancels the call's context, and the agent waits for the function to return. The
// model is told and can call the tool again. [MaxResult] limits the part of a result that the model receives; the agent keeps the
// rest, which the model can read with the tool read_result. See package agent.
//
// # Paths
//
// A tool must not trust a path that comes from the model. Root.Resolve of package tool/fs keeps paths within a directory:
//
//	dir, name, err := root.Resolve(ctx, in.Path)
//
// # Approval by a person
//
// [Confirm] asks for approval before each call of a tool. With [Ask], a person decides, even if the process ends before the
// answer arrives. Any other [Approver] can decide on its own. The zero Approver always refuses:
//
//	tool.Confirm(fs.Write(root), tool.Ask)
//
// # Construction
//
// This package never panics. An invalid tool has an Err, which Validate reports and every call returns.
//
// Packages tool/fs and tool/shell provide tools for files and commands.
//
// [Func] accepts an [Option] for each property of a tool, such as [Effects] or [Timeout]. [Always] is an Approver that allows
// every call.
package tool
