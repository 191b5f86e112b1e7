// Package skill installs a skill that teaches coding agents to design ashlars with this
// library: an interview, a cheat sheet, patterns and the checks to run, in the folder
// format of such agents, with a SKILL.md at its top.
//
// The bundle is embedded. The tests of this package compile its Go code, validate its
// pipelines, check its plan and run its tests, so that it fits this version of the
// library.
package skill
