// Package load builds the pipeline of a Go package into a program and runs it.
//
// The program combines the package's Pipeline with the command line of package cli. Its main function exists only in a build
// overlay: nothing is written into the package, its module or its workspace. A package main is built without its own main
// function.
//
// The build runs in its own workspace, which uses the modules of the user's module or workspace. So the go command finds the
// command line's dependencies and records their checksums outside the user's go.mod and go.sum, which may contain only the
// pipeline's imports.
package load
