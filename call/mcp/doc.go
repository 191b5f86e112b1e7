// Package mcp makes capabilities of the tools of servers that speak the Model Context
// Protocol:
//
//	files := mcp.NewServer(mcp.Config{Command: []string{"/usr/bin/mcp-server-filesystem", root}}, call.Scope{})
//	defer files.Close()
//	registry := call.NewRegistry(
//		mcp.New(call.Metadata{ID: "files/read", Effects: []string{"process"}}, mcp.ToolConfig{Server: files, Tool: "read_text_file"}),
//	)
//
// The input of a request is the input of the tool, and is checked against the schema of
// the tool before it is sent. The out is the structured content of the result, or
// {"text": …}, with "media" if the tool returned pictures, sounds or files.
//
// A server is started or reached when the first of its tools is used, and released after
// a minute without calls. The next call starts it again, also if it has died. Package
// tool/mcp describes the kinds of servers.
//
// The first definition of each tool of a configured server is kept in the user's configuration
// directory. A changed one is refused until the user accepts it with "stone trust --tools".
//
// Importing the package registers the kind mcp and its servers for configurations.
package mcp
