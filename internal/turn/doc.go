// Package turn describes a run's output in one turn of a conversation, part by part: texts, reasoning, tool calls and their
// results.
//
// A [Log] watches a run, or reads its record from a journal. Both produce the same parts with the same ids. A viewer skips the
// parts that it has already sent, and sends the rest. A viewer may therefore join late, reconnect or be slow, and no event is
// kept for it.
//
// A rejected answer makes its parts void. A viewer that has not sent them leaves them out. A run that stops for a question
// retracts nothing: it produces the same parts when it continues.
//
// Packages x/ui, x/acp and x/a2a/server write the parts for their protocols.
package turn
