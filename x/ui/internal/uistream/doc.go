// Package uistream implements the AI SDK's UI message stream, version v1. It parses the requests of DefaultChatTransport, and
// converts the parts of a turn to chunks. It uses neither a server nor a journal.
//
// Text is streamed before it is accepted. Because the protocol cannot retract a part, the part of a rejected text ends with the
// metadata {"stone": {"retracted": "why"}}. Calls in a rejected answer end as failed.
//
// A question for the approval of a call is a tool-approval-request. Any other question is a part of the type data-question. It is
// answered by a part of the type data-answer, or by the text of the next message. If an approval is requested, such a text
// refuses it and is the reason.
//
// Calls are marked as providerExecuted, except calls that wait for the client's approval or result: these are sent to the client
// again without the mark. The results are the outputs in the last message of a request.
package uistream
