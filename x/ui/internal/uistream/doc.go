// Package uistream implements the AI SDK's UI message stream, version v1: it reads the requests of DefaultChatTransport and
// writes the parts of a turn as chunks. It has no server and no journal.
//
// Text is streamed before it is accepted. The protocol cannot take a part back, so the part of a rejected text ends with the
// metadata {"stone": {"retracted": "why"}}. Calls of a rejected answer end as failed.
//
// The approval of a call is a tool-approval-request. Any other question is a part data-question. A part data-answer
// or the text of the next message answers it. Beside an approval, that text is a refusal with its reason.
//
// Calls have providerExecuted, except calls that wait for the client, for its approval or its result: the client gets such a
// call again, without it. The outputs in the last message of a request are the results.
package uistream
