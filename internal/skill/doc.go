// Package skill installs what teaches a coding agent to design ashlars with this
// library: an interview, a cheat sheet, patterns and the checks to run, in the
// folder form that such agents look for, with a SKILL.md at its top.
//
// The bundle is embedded. The tests of this package compile its Go code, validate its
// pipelines, check its plan and run its tests, so that it fits the library it came
// with.
package skill
