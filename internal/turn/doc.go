// Package turn describes the output of a run in one turn of a conversation, part by part: texts, reasoning, tool calls and their
// results.
//
// A [Log] watches a run, or reads its record from a journal. Both produce the same parts with the same IDs. A viewer skips the
// parts that it has already sent to its client, and sends the rest. A viewer can therefore join late, reconnect or be slow, and no
// events are kept for it.
//
// If an answer is rejected, its parts become void. A viewer that has not sent them yet omits them. A run that stops for a question
// does not retract anything, because it produces the same parts again when it continues.
//
// Packages x/ui, x/acp and x/a2a/server convert the parts to their protocols.
package turn
