// Package screen provides the command's screen: with its part, cli.Main shows the pipeline on the full terminal when it is called
// without a command.
//
//	func main() { cli.Main(Pipeline, screen.Part) }
package screen

import (
	"github.com/stonelayer/stone/internal/display"
	"github.com/stonelayer/stone/x/screen/internal/tui"
)

// Part is the screen.
var Part = display.Screen(tui.Run)
