// Package mcp makes capabilities of the tools of servers that speak the Model Context
// Protocol:
//
//	files := mcp.NewServer(mcp.Config{Command: []string{"/usr/bin/mcp-server-filesystem", root}}, scope.Scope{})
//	defer files.Close()
//	registry := call.NewRegistry(
//		mcp.New(call.Metadata{ID: "files/read", Effects: []string{"process"}}, mcp.ToolConfig{Server: files, Tool: "read_text_file"}),
//	)
//
// The input of a request is that of the tool, and is held to its schema before it is
// sent. The out is the structured content of the result, or {"text": …}.
//
// A server is started or reached when the first of its tools is used, let go when it
// has been idle for a minute, and started again by the next call; one that died is,
// too. What the server may be is that of package tool/mcp, on which this stands.
//
// Importing the package makes the kind mcp and its servers
// known to configurations.
package mcp
