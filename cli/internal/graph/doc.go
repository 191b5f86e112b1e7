// Package graph draws the topology of a pipeline, as Mermaid or as DOT.
//
// Steps follow arrows. A match is a diamond whose arrows carry their branches; a
// fan-out and its reducer are trapezoids with thick arrows between; a question to
// a person is a parallelogram. Loops, rescues and composites of other kinds are
// frames: the dashed arrow of a loop leads back to its start, the arrow of a
// rescue to its handler. Ids follow the order of the tree, so that the same
// pipeline always gives the same text.
package graph
