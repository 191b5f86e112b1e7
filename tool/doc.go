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
// A tool is a middleware: add it to an agent's Use list; an agent cannot call tools that are not in its list. The model sees only
// the schema of the input type, so describe the fields.
//
// # Results for the model
//
// The model receives a string as text, an [agent.Result] with its further fields, and any other output as JSON. An [llm.Media],
// even within a struct or list, is shown to the model, or the model is told that its provider cannot show it.
//
// Input that does not fit the schema never reaches the function: the call returns an [InputError] with all problems. An error of
// the function is returned unchanged. The model reads either error and can call again, so errors should explain how to fix the
// call.
//
// # Bounds
//
// [Timeout] ends the context of a call; the agent waits for the function to return. The model is told, and can call again.
// [MaxResult] limits the part of a result that the model receives; the agent keeps the rest, and the model reads it with the tool
// read_result. See package agent.
//
// # Paths
//
// A tool that takes a path from the model must not trust it. Root.Resolve of package
// tool/fs keeps it within a directory:
//
//	dir, name, err := root.Resolve(ctx, in.Path)
//
// # Approval by a person
//
// [Confirm] asks for approval before each call of a tool. With [Ask], a person decides, even if the process ends before the
// answer arrives; any other [Approver] can decide by itself. The zero Approver always refuses:
//
//	tool.Confirm(fs.Write(root), tool.Ask)
//
// # Construction
//
// This package never panics. An invalid tool has an Err, which validation reports and
// every call returns.
//
// The tools for files and commands are in tool/fs and tool/shell.
//
// [Func] takes an [Option] for each property of a tool, such as [Effects] or [Timeout]. [Always] is an Approver that allows every
// call.
package tool
