// Package a2a adds the Agent2Agent protocol (A2A) to a program. Its server offers the published pipelines as an agent; see
// package x/a2a/server. Its client makes other people's agents available as capabilities of the kind a2a; see package
// x/a2a/client. The package is a separate module, so that only programs that import it have to build the protocol's SDK.
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

// Parts returns two parts of a program: one for the server, whose agent has the given configuration, and one for capabilities of
// the kind a2a.
func Parts(agent server.Config) []cli.Part {
	return []cli.Part{client.Part, serve.Protocol{Mounts: func(serve.Options) map[string]mounts.Mount { return server.Mounts(agent) }}}
}
