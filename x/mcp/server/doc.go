// Package server serves published pipelines to clients of the Model Context Protocol, over
// HTTP as a mount of a server, or over standard input and output.
//
//	s, err := serve.New(serve.Config{
//		Journal:   db,
//		Pipelines: pipelines,
//		Mounts:    map[string]serve.Mount{"/mcp": server.Mount(server.Config{})},
//	})
//
// [Part] adds it to the command: stone serve offers it at /mcp, and stone mcp serves one client.
//
// # Tools
//
// Each pipeline is a tool with the pipeline's name, in which "_" replaces dots. Its arguments are the input of the pipeline, or
// {"input": …} if that is not an object. An argument whose name some providers would refuse, such as user/tone, is renamed to
// user_tone. Its result is the run's result, as text and, with the id and the state of the run, as structured content. The
// annotations are derived from the effects that the pipeline declares. A caller has the roles, the tenant and the limits that
// [serve.Access] gives it.
//
// A call starts a durable run and reports each finished step as progress. If the run takes
// longer than [Config.Wait], the call returns its id, and the tools run_result, run_status,
// run_answer and run_cancel act on it. A client with the extension
// io.modelcontextprotocol/tasks gets a task instead.
//
// A client that supports elicitation asks its user the run's questions. Otherwise the call returns the question, and a person
// answers it elsewhere. The client's model cannot answer unless [Config.ModelMayAnswer] is set: run_answer makes the client ask
// its user.
//
// A call that is cancelled cancels its run, because nobody else knows it. A run whose call has returned continues. So do the runs
// of a client on standard input that ends: the next server with the journal resumes them.
//
// # Resources
//
// A node of a run is the resource stone://run/RUN/node/NODE.
//
// # Sessions
//
// There are none over HTTP: the whole state of a run is in the journal, so every server that shares it can answer. Clients of
// protocol versions before 2026-07-28 have elicitation only over standard input and output, because over HTTP it would need a
// session.
package server
