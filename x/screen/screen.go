// Package screen provides the screen of the command. With its part, a program that is called without a command shows its pipeline
// on the full terminal.
//
//	func main() { cli.Main(Pipeline, screen.Part) }
package screen

import (
	"github.com/stonelayer/stone/internal/display"
	"github.com/stonelayer/stone/x/screen/internal/tui"
)

// Part adds the screen to a program.
var Part = display.Screen(tui.Run)
