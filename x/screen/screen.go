// Package screen shows a pipeline on the full screen of a terminal. A program with its part does so if it is called without a
// command:
//
//	func main() { cli.Main(Pipeline, screen.Part) }
package screen

import (
	"github.com/stonelayer/stone/internal/display"
	"github.com/stonelayer/stone/x/screen/internal/tui"
)

// Part adds the screen to a program.
var Part = display.Screen(tui.Run)
