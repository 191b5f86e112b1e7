// Package load builds a program from the pipeline of a Go package, and runs the program.
//
// The program combines the package's Pipeline with the command line of package cli. Its main function exists only in a build
// overlay, so nothing is written to the package, its module or its workspace. If the package is a package main, its own main
// function is left out.
//
// The build uses a workspace of its own, which contains the modules of the user's module or workspace. There the go command finds
// the dependencies of the command line and records their checksums. The user's go.mod and go.sum, which may cover only the
// pipeline's imports, remain unchanged.
package load
