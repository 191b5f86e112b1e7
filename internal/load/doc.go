// Package load builds the pipeline of a Go package into a program and runs it.
//
// The program is the package's Pipeline under the command line of package cli.
// Its main function exists only in an overlay of the build: nothing is written
// into the package, its module or its workspace. A package main is built with
// its own main function set aside.
//
// The build runs in a workspace of its own, which uses what the user's module
// or workspace uses. So the dependencies of the command line are found, and
// their checksums noted, beside the user's go.mod and go.sum, which the user
// may have tidied down to what the pipeline itself imports.
package load
