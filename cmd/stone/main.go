// Command stone runs and inspects pipelines in Go packages. See package cli and stone --help.
package main

import (
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/cli/all"
)

func main() { cli.Main(cli.FromArgument, all.Parts()...) }
