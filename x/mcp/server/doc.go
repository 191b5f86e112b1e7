// Package server serves published pipelines to clients of the Model Context Protocol (MCP), either over HTTP, as a mount of a
// serve.Server, or over standard input and output.
//
//	s, err := serve.New(serve.Config{
//		Journal:   db,
//		Pipelines: pipelines,
//		Mounts:    map[string]serve.Mount{"/mcp": server.Mount(server.Config{})},
//	})
//
// [Part] adds MCP to a program: the command serve then offers it at /mcp, and the command mcp serves one client over standard
// input and output.
//
// # Tools
//
// Each pipeline is a tool with the pipeline's name, in which "_" replaces dots. The tool's arguments are the pipeline's input, or
// {"input": …} if this input is not an object. An argument whose name some providers would refuse is renamed: user/tone becomes
// user_tone. The tool returns the run's result as text and, together with the run's id and state, as structured content. The
// annotations are derived from the effects that the pipeline declares. [serve.Access] determines a caller's roles, tenant and
// limits.
//
// A call starts a durable run and reports each finished step as progress. If the run takes longer than [Config.Wait], the call
// returns the run's id, with which the client can use the tools run_result, run_status, run_answer and run_cancel. A client with
// the extension io.modelcontextprotocol/tasks gets a task instead.
//
// If a client supports elicitation, it is asked to show the run's questions to its user. Otherwise the call returns the question,
// and a person has to answer it elsewhere. The client's model cannot answer unless [Config.ModelMayAnswer] is set: run_answer
// only makes the client ask its user.
//
// Canceling a call cancels its run, because no one else knows of the run. If a call has returned before its run has ended, the
// run continues. The same holds for runs of a client on standard input and output: when the client ends, the next server that
// opens the journal resumes them.
//
// # Resources
//
// A node of a run is the resource stone://run/RUN/node/NODE.
//
// # Sessions
//
// There are no sessions over HTTP: the whole state of a run is in the journal, so any server that shares the journal can answer.
// Clients of protocol versions before 2026-07-28 can use elicitation only over standard input and output, because over HTTP it
// would require a session.
package server
