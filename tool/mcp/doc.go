// Package mcp gives agents and calls the tools of servers that speak the Model Context
// Protocol, over the standard streams of a command or over streamable HTTP.
//
//	files, err := mcp.Connect(ctx, mcp.Config{Command: []string{"mcp-server-filesystem", root}})
//	if err != nil { … }
//	defer files.Close()
//	use, err := files.Tools(ctx, "read_text_file", "list_directory")
//
// Every tool is a middleware that goes into the Use list of an agent. Its input
// schema is the server's, and the agent checks calls against it before they are
// sent. Name the tools that you want: without names an agent gets all that the
// server offers, today and after its next release.
//
// # Connected or lazy
//
// [Connect] starts the server at once and keeps it until Close, which suits a
// program that makes its pipeline in main. [Tools] suits a pipeline that is a
// package-level value or comes from a function without error: it starts the
// server, reads its tools once, stops it when it has been idle, and starts it again
// when a tool is called; it needs no Close. Either way the schemas are known when the
// pipeline is made, so it can be validated and resumed. The price is that making it
// takes as long as a start of the server, and that tools which the server adds or
// changes afterwards are not seen: the server answers a call of a removed one with an
// error, which the model reads, and a changed one is refused.
//
// # Capabilities
//
// The tools of a server can be capabilities of calls too. [NewOnDemand] makes a server that starts with the first call:
//
//	files := mcp.NewOnDemand(mcp.Config{Command: []string{"/usr/bin/mcp-server-filesystem", root}}, call.Scope{})
//	defer files.Close()
//	registry := call.NewRegistry(files.Capability(call.Metadata{ID: "files/read", Effects: []string{"process"}}, "read_text_file"))
//
// A configuration names such servers and tools where the program has [Part]. They keep the first definition of each tool
// in the user's configuration directory. A changed one is refused until the user accepts it with "stone trust --tools".
//
// # Results for the model
//
// The model reads the text parts of a result, one below the other. Structured content
// is written as JSON unless the text parts have the same content; content that does not fit
// the output schema of the tool is marked. Images, sounds, videos and PDF documents are
// described in a line, and the model is shown them; the agent tells it which ones its provider has
// no form for. Other parts are described and kept in the Meta of the result, under "content", with the
// structured content under "structured". A result that is marked as an error is one. The agent
// keeps a text longer than Config.MaxText, and the model reads it in parts.
//
// # Versions of the protocol
//
// A server is started by the newest version of the protocol. If it does not answer to that in
// some seconds, or ends, it is started again by an older one, and a server at a URL then by the
// transport of 2024. What worked is kept for the next start of the [Server]; Config.Protocol
// names a version and saves the attempts. Lines on the standard output of a command that are no
// messages are dropped, and stand in the error if it does not start.
//
// # Lost servers
//
// A server that died, or an HTTP session that the server no longer knows, is
// started again by the next call, after a pause that grows while it keeps failing.
// A call that did not reach the server is sent again. One that may have been
// received is not: the model is told that it may or may not have been done
// ([ErrUncertain]). Only a tool in Config.Harmless is called once more. A call that
// takes longer than Config.Timeout is canceled at the server and reported in the same
// way, and the server is pinged before the next call.
//
// A server's own annotations, such as that a tool is read-only, are not trusted: they
// neither skip an approval nor make calls parallel. List tools that change nothing in
// Config.Harmless, give servers that you do not trust an Approver, and let the
// agent have few of their tools.
//
// # Logins
//
// Config.OAuth sends the requests with the account of a user. [Login] runs the authorization code
// flow with PKCE: it finds the server of logins, registers the program there unless it has an
// id, and waits on 127.0.0.1 for the browser. The tokens belong to the URL of the server; they
// are renewed when they expire or are refused, and are secrets of the run. Without a valid login, the error is
// [ErrLogin]. For servers in a configuration file, "stone login" does this:
//
//	{:servers {:tickets {:url "https://tickets.example.com/mcp" :oauth {}}}}
//
// # Changed definitions
//
// A server may change what it says about a tool, and so what a model does with it. The
// definition of a tool (its name, title, description, schemas and annotations) is read when the
// tool is made, and again in each new session and when the server reports a change. If it is
// another one, the tool is not called, and the error shows what has changed. A server over HTTP
// can report changes only while a request runs.
//
// Config.Accept decides about definitions, also the first ones. [Pinned] compares them with
// digests in the program. Servers in a configuration file have their first definitions kept in
// the user's configuration directory; "stone trust --tools" accepts another one.
//
// # Secrets
//
// The values in Env and Header, and the URL beyond its host, appear in no error and
// no printed Config. A command gets the variables of Env and a few that programs need to
// run at all, such as PATH, but not the keys of model providers.
//
// # Confinement
//
// A command runs in a sandbox and reaches what Config.Sandbox grants. A server that
// is installed in a home directory, as by npm, needs that directory in ReadOnly; one
// that downloads itself needs Network. All processes that a command has started end
// with it.
//
// # Servers on demand
//
// [NewOnDemand] returns an [OnDemand] server, which starts when the first of its tools is used. A [Definition] is what a server says of
// a tool, for Config.Accept.
package mcp
