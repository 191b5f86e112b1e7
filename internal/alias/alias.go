// Package alias names the node of another run for which a node stands.
package alias

// Meta is the meta of a node that a forked run has taken from another one: the id that the node has there. Steps that read
// the node are then known by that id, since an id covers all nodes before it, and these may be others in the fork. A DAG
// that is read from outside has no such meta.
const Meta = "reused-as"
