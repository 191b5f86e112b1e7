// Package docs contains the test of the project's documentation, and Keys, with which tests compare reference pages with the keys
// that readers accept.
//
// The test reads README.md, CONTRIBUTING.md and every page below docs. Of the
// fenced blocks of a page,
//
//   - "go" must compile: a block that starts with a package clause is a file of the program that the page develops. The lines of
//     any other block must occur in a Go file of this repository or of the page's program;
//   - "sh" is run with bash -e, in order, in one temporary directory for the page;
//   - "console" is run too: lines that begin with "$ " are commands, and the lines below a command are its expected output, in
//     which … matches any text;
//   - a block whose first line is a comment naming a file ("# go.mod", "; plan.edn",
//     "// main.go") is written to that file.
package docs
