// Package screen links the screen into a program: with it, cli.Main shows the
// pipeline on the whole terminal when it is called without a command.
//
//	import _ "github.com/stonelayer/stone/cli/screen"
package screen

import (
	"github.com/stonelayer/stone/cli/internal/display"
	"github.com/stonelayer/stone/cli/internal/tui"
)

func init() { display.Run = tui.Run }
