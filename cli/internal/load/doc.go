// Package load builds the pipeline of a Go package into a program and runs it.
//
// The program is the package's Pipeline under the command line of package cli.
// Its main function exists only in an overlay of the build: nothing is written
// into the package, its module or its workspace. A package main is built with
// its own main function set aside.
//
// The build runs in its own workspace, which uses the modules of the user's module or workspace. So the go command finds the
// dependencies of the command line and records their checksums outside the user's go.mod and go.sum, which may contain only the
// imports of the pipeline.
package load
