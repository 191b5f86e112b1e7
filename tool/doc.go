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
// A tool is a middleware: it goes into the Use list of an agent, and an agent that
// does not have it there cannot call it. The model sees the schema of the input
// type and nothing else, so describe the fields.
//
// # What goes back to the model
//
// A string is the text that the model reads, an [agent.Result] says more, and any
// other output is read as its JSON. Input that does not fit the schema never
// reaches the function: the call returns an [InputError] with all that is wrong,
// and an error of the function is returned as it is. Either way the model reads
// it and can call again, so write errors for a reader who wants to do better.
//
// # What a person decides
//
// [Confirm] puts a question before a tool. Nobody to ask means no:
//
//	tool.Confirm(fs.Write(root), askOnTerminal)
//
// # Construction
//
// Nothing here panics. A tool that was made wrongly has an Err, which validation
// reports, and answers every call with it.
//
// The files and commands of the machine are in tool/fs and tool/shell.
package tool
