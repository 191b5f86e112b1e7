// Package a2a adds the Agent2Agent protocol (A2A) to a program. Its server offers the published pipelines as an agent; see
// package x/a2a/server. Its client makes other people's agents available as capabilities of the kind a2a; see package
// x/a2a/client. It is a separate module, so only programs that import it build the protocol's SDK.
//
//	func main() { cli.Main(Pipeline, append(all.Parts(), a2a.Parts(server.Config{})...)...) }
package a2a

import (
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/cli/serve"
	mounts "github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/a2a/client"
	"github.com/stonelayer/stone/x/a2a/server"
)

// Parts returns the part for the server, with the agent as configured, and the part for capabilities of the kind a2a.
func Parts(agent server.Config) []cli.Part {
	return []cli.Part{client.Part, serve.Protocol{Mounts: func(serve.Options) map[string]mounts.Mount { return server.Mounts(agent) }}}
}
