// Package mcp lets agents and calls use the tools of servers that speak the Model Context Protocol. A server is a command,
// reached over its standard input and output, or a URL, reached over streamable HTTP.
//
//	files, err := mcp.Connect(ctx, mcp.Config{Command: []string{"mcp-server-filesystem", root}})
//	if err != nil { … }
//	defer files.Close()
//	use, err := files.Tools(ctx, "read_text_file", "list_directory")
//
// Every tool is a middleware for the Use list of an agent. The server provides the schema of the tool's input, and the agent
// checks each call against this schema before sending the call. Name the tools that you want: without names, an agent receives
// all of the server's tools, including those that the server adds later.
//
// # Connected or lazy
//
// [Connect] starts the server at once and keeps it running until Close, which suits a program that makes its pipeline in main.
// [Tools] suits a pipeline that is a package-level value or is returned by a function without an error: it starts the server,
// reads the list of tools once, stops the server when it has been idle, and starts it again when a tool is called. It needs no
// Close. Either way, the schemas are known when the pipeline is made, so the pipeline can be validated and resumed. There are two
// drawbacks: making the pipeline takes as long as starting the server, and later changes to the list of tools are not noticed. If
// the model calls a tool that the server has removed, the model receives the server's error. If the definition of a tool has
// changed, calls of the tool are rejected.
//
// # Capabilities
//
// A server's tools can also be capabilities. [NewOnDemand] makes a server that starts with the first call:
//
//	files := mcp.NewOnDemand(mcp.Config{Command: []string{"/usr/bin/mcp-server-filesystem", root}}, call.Scope{})
//	defer files.Close()
//	registry := call.NewRegistry(files.Capability(call.Metadata{ID: "files/read", Effects: []string{"process"}}, "read_text_file"))
//
// Programs with [Part] read such servers and tools from a configuration. The first definition of each tool is stored in the
// user's configuration directory. A changed definition is rejected until the user accepts it with "stone trust --tools".
//
// # Results for the model
//
// The model receives the text parts of a result, one below the other. Structured content is added as JSON unless the text parts
// have the same content; content that does not fit the tool's output schema is marked. Images, sounds, videos and PDF documents
// are each described in one line and shown to the model, unless its provider does not support them. Other parts are described and
// stored in the Meta of the result, under "content"; structured content is stored there under "structured". A result marked as an
// error fails the call. The agent keeps a text longer than Config.MaxText, and the model can read it in parts.
//
// # Versions of the protocol
//
// A server is started with the newest protocol version. If it does not answer within seconds, or ends, it is started again with
// an older version; for a server at a URL, the last attempt uses the transport of 2024. The [Server] remembers the version that
// worked. Setting Config.Protocol avoids these attempts. Other output of a command is dropped, but appears in the error if the
// command does not start.
//
// # Lost servers
//
// If a server died or no longer knows an HTTP session, the next call starts it again, after a pause that grows as failures
// continue. A call that did not reach the server is sent again. A call that the server may have received is not sent again;
// instead, the model is told that the call may have been carried out ([ErrUncertain]). Only a tool in Config.Harmless is called
// again. A call that takes longer than Config.Timeout is canceled at the server and reported in the same way, and the server is
// pinged before the next call.
//
// A server's own annotations, such as a claim that a tool is read-only, are not trusted: they neither skip an approval nor make
// calls parallel. List tools that change nothing in Config.Harmless. For servers that you do not trust, set an Approver and use
// few of their tools.
//
// # Logins
//
// Config.OAuth sends the requests with a user's account. [Login] runs the authorization code flow with PKCE: it finds the
// authorization server, registers the program there unless it has an id, and waits on 127.0.0.1 for the browser. The tokens are
// sent only to the server's URL, are renewed when they expire or are rejected, and are treated as secrets of the run. Without a
// valid login, the error is [ErrLogin]. For servers in a configuration file, "stone login" logs the user in:
//
//	{:servers {:tickets {:url "https://tickets.example.com/mcp" :oauth {}}}}
//
// # Changed definitions
//
// A server may change a tool's description, and thereby a model's behavior. The definition of a tool (its name, title,
// description, schemas and annotations) is read when the tool is made, in each new session, and when the server reports a change.
// If the definition has changed, the tool is not called, and the error shows the change. A server over HTTP can report changes
// only while a request is running.
//
// Config.Accept decides whether definitions are accepted, including the first ones. [Pinned] compares them with digests in the
// program. For servers in a configuration file, the first definitions are stored in the user's configuration directory; "stone
// trust --tools" accepts a change.
//
// # Secrets
//
// The values in Env and Header, and the URL beyond its host, never appear in an error or a printed Config. A command receives the
// variables in Env and a few others that programs need, such as PATH, but not the keys of model providers.
//
// # Confinement
//
// A command runs in a sandbox with the rights that Config.Sandbox grants. A server installed in a home directory, for example by
// npm, needs that directory in ReadOnly; a server that downloads itself needs Network. All processes started by a command end
// with it.
//
// # Servers on demand
//
// [NewOnDemand] returns an [OnDemand] server, which starts when the first of its tools is used. A [Definition] is a server's
// description of a tool, for Config.Accept.
package mcp
