// Package uistream speaks the UI message stream of the AI SDK, version v1: it reads the requests of
// DefaultChatTransport, and writes the parts of a turn as chunks. The package has no server and no journal.
//
// A text is streamed before it is accepted. If it is rejected, its part ends with the metadata
// {"stone": {"retracted": "why"}}, since the protocol cannot take a part back. Calls that a rejected
// answer made end as failed.
//
// An approval of a call is a tool-approval-request, any other question a part data-question. It is answered
// with a part data-answer, or with the text of the next message.
package uistream
