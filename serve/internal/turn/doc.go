// Package turn has what a run says in one turn of a conversation: texts, reasoning, calls of tools
// and their results, part by part, as far as it has got.
//
// A [Log] watches a run, or is told what a journal has of one: both make the same parts with the same
// ids. A viewer compares the parts with those that it has sent, and sends the rest. So a viewer may come late,
// come back, or be slow, and no event is kept for it.
//
// An answer that is rejected makes its parts void. A viewer that has not sent them leaves them out.
// A run that stops for a question takes nothing back: it says the same again when it continues.
//
// Packages uistream and agui write the parts as their protocols want them.
package turn
