// Package skill installs what teaches a coding agent to design ashlars with this
// library: an interview, a cheat sheet, patterns and the checks to run, in the
// folder form that such agents look for, with a SKILL.md at its top.
//
// The bundle is embedded. Its Go code is compiled, its pipeline validated and its
// tests run by the tests of this package, so that it fits the library it came with.
package skill
