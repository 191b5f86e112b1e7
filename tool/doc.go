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
// A tool is a middleware. Add it to an agent's Use list: an agent can call only the tools in this list. All that the model knows
// about the input is the schema of its type, so describe the fields.
//
// # Results for the model
//
// The model receives a string as text and any other output as JSON. A function can also return an [agent.Result]. The model sees
// an [llm.Media] in the output, even within a struct or list; if its provider does not support the media type, the model is told
// so.
//
// If the input does not fit the schema, the function is not called, and the call returns an [InputError] that lists all problems.
// If the function returns an error, the call returns it unchanged. In both cases, the model receives the error and can call the
// tool again, so an error should explain how to fix the call.
//
// # Bounds
//
// Each [Option] sets one property of a tool. [Timeout] limits the duration of a call: when the time is over, the call's context
// is canceled, and the agent waits for the function to return. The model is told about the timeout and can call the tool again.
// [MaxResult] limits the part of a result that the model receives; the agent keeps the rest, which the model can read with the
// tool read_result. See package agent.
//
// # Paths
//
// A tool must not trust a path that comes from the model. Root.Resolve of package tool/fs keeps paths within a directory:
//
//	dir, name, err := root.Resolve(ctx, in.Path)
//
// # Approval by a person
//
// [Confirm] asks an [Approver] before each call of a tool. The approver [Ask] asks a person; if the process ends before the
// answer arrives, the resumed run continues to wait. Other approvers can decide in code. The zero Approver refuses every call.
//
//	tool.Confirm(fs.Write(root), tool.Ask)
//
// # Construction
//
// The functions of this package do not panic if their arguments are invalid. Instead, the tool has an Err, which Validate reports
// and every call returns.
//
// Packages tool/fs and tool/shell provide tools for files and commands.
//
// [Func] accepts options, such as [Effects] or [Timeout], that set the properties of the tool. [Always] is an Approver that
// allows every call.
package tool
