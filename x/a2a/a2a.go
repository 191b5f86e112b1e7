// Package a2a gives programs the Agent2Agent protocol (A2A): the published pipelines of their server are an
// agent, see package x/a2a/server, and agents of others are capabilities of kind a2a, see package
// x/a2a/client. It is a module of its own, so that only programs that import it build the SDK of the protocol.
//
//	func main() { cli.Main(Pipeline, append(all.Parts(), a2a.Parts(server.Config{})...)...) }
package a2a

import (
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/cli/serve"
	"github.com/stonelayer/stone/x/a2a/client"
	"github.com/stonelayer/stone/x/a2a/server"
)

// Parts returns the agent, with its configuration, and the kind of capabilities.
func Parts(agent server.Config) []cli.Part {
	return []cli.Part{client.Part, serve.Protocol{Mounts: server.Mounts(agent)}}
}
